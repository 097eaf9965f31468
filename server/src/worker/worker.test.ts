import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { countDaily } from '../core/messages/daily.ts'
import { cleanUp } from '../testing/cleanup.ts'
import { type Domain, recordOf, recordsOf, startStage, startWorld } from '../testing/verification.ts'
import { startWorker } from './worker.ts'

/** The worker as it runs, with nobody calling its functions. */
const world = await startWorld()
const { ses, publish } = world
const stage = await startStage(world)
const { admin, api, database, show, pathOf } = stage
const graceMs = 20_000

const worker = startWorker(stage.deps)
cleanUp(() => worker.stop(graceMs))

const waitMs = 60_000

async function until<T>(look: () => Promise<T | undefined | false>, what: string): Promise<T> {
  const end = Date.now() + waitMs
  while (Date.now() < end) {
    const found = await look()
    if (found) return found
    await sleep(50)
  }
  throw new Error(`never happened: ${what}`)
}

const untilShown = (domain: Domain, isSo: (shown: Domain) => boolean, what: string): Promise<Domain> =>
  until(async () => {
    const shown = await show(domain)
    return isSo(shown) && shown
  }, what)

const asked = async (domain: Domain): Promise<void> => {
  const { status, text } = await admin.post(`${pathOf(domain)}/verify`)
  assert.equal(status, 200, text)
}

describe('the worker', () => {
  test('brings a domain of our own MTAs from its creation to verified', async () => {
    const { id } = await stage.makeProject()
    const domain = await stage.makeDomain(id, { mta_provider: 'service' })
    await untilShown(domain, ({ identity }) => identity.state === 'registered', 'it is registered')
    await publish(...domain.dns_records)
    await asked(domain)
    const verified = await untilShown(domain, ({ status }) => status === 'verified', 'it is verified')
    assert.ok(verified.dns_records.every(({ status }) => status === 'verified'))
  })

  test('brings a domain of SES from its creation to verified, and its old name out of SES', async () => {
    const { id } = await stage.makeProject()
    const domain = await stage.makeDomain(id, { name: 'first.example.com' })
    await untilShown(domain, ({ identity }) => identity.state === 'registered', 'it is registered')
    await admin.patch(pathOf(domain), { name: 'second.example.com' })
    const renamed = await untilShown(domain, ({ identity }) => identity.state === 'registered', 'again')
    await until(async () => !ses.has('first.example.com'), 'the old name is deregistered')
    assert.equal(ses.has('second.example.com'), true)

    await publish(recordOf(renamed, 'ownership'), ...recordsOf(renamed, 'dkim'))
    ses.setDkim('second.example.com', 'SUCCESS')
    await asked(domain)
    await untilShown(domain, ({ status }) => status === 'verified', 'it is verified')
  })

  test('signs the audit', async () => {
    await until(
      async () => (await database.query('select from control.audit_checkpoints limit 1')).length > 0,
      'there is a checkpoint',
    )
  })

  test('does what lies there, although its job was lost', async () => {
    const { id } = await stage.makeProject()
    const domain = await stage.makeDomain(id)
    await database.query(`delete from jobs.job where name = 'identities.settle'`)
    // As the minute brings it.
    await database.query(`insert into jobs.job (name, data) values ('identities.sweep', '{}')`)
    await untilShown(domain, ({ identity }) => identity.state === 'registered', 'it is registered')
  })

  test('tells a project what was counted of its mail, and scores it', async () => {
    const { id } = await stage.makeProject()
    await api.context.cells.all[0].mail.transaction((tx) =>
      countDaily(tx, [{ projectId: id, sent: 1000, bounced: 60, failed: 2, complained: 1 }]),
    )
    const told = await until(async () => {
      const { body } = await admin.get(`/projects/${id}`)
      return body.bounced > 0 && body
    }, 'the project has its figures')
    assert.deepEqual([told.bounced, told.failed, told.complained, told.reputation_score], [60, 2, 1, 50])
  })

  test('told to stop finishes the call that it has begun, and begins no other', async () => {
    const { id } = await stage.makeProject()
    const before = ses.calls.length
    ses.failNext('create', { delayMs: 1500 })
    const domain = await stage.makeDomain(id)
    await until(async () => ses.calls.length > before, 'SES is asked')
    const stopped = worker.stop(graceMs)
    const late = await stage.makeDomain(id)
    await stopped
    assert.equal((await show(domain)).identity.state, 'registered')
    await sleep(1500)
    assert.equal((await show(late)).identity.state, 'registering')
    assert.equal(ses.calls.length, before + 1)
  })

  test('had nothing go wrong', () => {
    assert.deepEqual(stage.errors(), [])
    assert.match(api.logLines.join(''), /"msg":"working"/)
  })
})
