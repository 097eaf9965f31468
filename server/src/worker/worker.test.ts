import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { countDaily } from '../core/mail/messages/daily-counters.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import {
  type Domain,
  recordOf,
  recordsOf,
  startStage,
  startWorld,
} from '../testing/harness/verification-harness.ts'
import { eventually, patienceMs } from '../testing/harness/waiting.ts'
import { startWorker } from './worker.ts'

/** The worker as it runs, with nobody calling its functions. */
const world = await startWorld()
const { ses, publish } = world
const stage = await startStage(world)
const { admin, api, database, show, pathOf } = stage

const worker = startWorker(stage.deps)
cleanUp(() => worker.stop(patienceMs))

const shownAs = (domain: Domain, what: string, isSo: (shown: Domain) => boolean): Promise<Domain> =>
  eventually(`domain ${domain.id} is ${what}`, async () => {
    const shown = await show(domain)
    return isSo(shown) && shown
  })
const isRegistered = ({ identity }: Domain): boolean => identity.state === 'registered'
const isVerified = ({ status }: Domain): boolean => status === 'verified'

const asked = async (domain: Domain): Promise<void> => {
  const { status, text } = await admin.post(`${pathOf(domain)}/verify`)
  assert.equal(status, 200, text)
}

describe('the worker', () => {
  test('brings a domain of our own MTAs from its creation to verified', async () => {
    const { id } = await stage.makeProject()
    const domain = await stage.makeDomain(id, { mta_provider: 'service' })
    await shownAs(domain, 'registered', isRegistered)
    await publish(...domain.dns_records)
    await asked(domain)
    const verified = await shownAs(domain, 'verified', isVerified)
    assert.ok(verified.dns_records.every(({ status }) => status === 'verified'))
  })

  test('brings a domain of SES from its creation to verified, and its old name out of SES', async () => {
    const { id } = await stage.makeProject()
    const domain = await stage.makeDomain(id, { name: 'first.example.com' })
    await shownAs(domain, 'registered', isRegistered)
    await admin.patch(pathOf(domain), { name: 'second.example.com' })
    const renamed = await shownAs(domain, 'registered again', isRegistered)
    await eventually('the old name is deregistered', () => !ses.has('first.example.com'))
    assert.equal(ses.has('second.example.com'), true)

    await publish(recordOf(renamed, 'ownership'), ...recordsOf(renamed, 'dkim'))
    ses.setDkim('second.example.com', 'SUCCESS')
    await asked(domain)
    await shownAs(domain, 'verified', isVerified)
  })

  test('signs the audit', async () => {
    await eventually(
      'there is a checkpoint',
      async () => (await database.query('select from control.audit_checkpoints limit 1')).length > 0,
    )
  })

  test('does due work although its job was lost', async () => {
    const { id } = await stage.makeProject()
    const domain = await stage.makeDomain(id)
    await database.query(`delete from jobs.job where name = 'identities.reconcile'`)
    // As the minute brings it.
    await database.query(`insert into jobs.job (name, data) values ('identities.sweep', '{}')`)
    await shownAs(domain, 'registered', isRegistered)
  })

  test('relays the counts of a project’s mail, and scores it', async () => {
    const { id } = await stage.makeProject()
    await api.context.cells.all[0].mail.transaction((tx) =>
      countDaily(tx, [{ projectId: id, sent: 1000, bounced: 60, failed: 2, complained: 1 }]),
    )
    const told = await eventually('the project has its figures', async () => {
      const { body } = await admin.get(`/projects/${id}`)
      return body.bounced > 0 && body
    })
    assert.deepEqual([told.bounced, told.failed, told.complained, told.reputation_score], [60, 2, 1, 50])
  })

  test('finishes the current call when it is stopped, and starts no other', async () => {
    const { id } = await stage.makeProject()
    const before = ses.calls.length
    const [isAsked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    ses.hooks.onRequest = () => {
      isAsked.resolve()
      return released.promise
    }
    const domain = await stage.makeDomain(id)
    await isAsked.promise
    const stopped = worker.stop(patienceMs)
    const late = await stage.makeDomain(id)
    // SES answers only now: the worker was stopping, and had another job to begin.
    released.resolve()
    await stopped
    assert.equal((await show(domain)).identity.state, 'registered')
    await sleep(1500)
    assert.equal((await show(late)).identity.state, 'registering')
    assert.deepEqual(
      ses.calls.slice(before).filter((call) => call.domain !== domain.name),
      [],
    )
  })

  test('logged no error', () => {
    assert.deepEqual(stage.errors(), [])
    assert.match(api.logLines.join(''), /"msg":"working"/)
  })
})
