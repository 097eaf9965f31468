import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { countSending } from '../core/mail/counters/counters.ts'
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

/** The worker as it runs in production, driven only by its schedules and queues. */
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

const requestCheck = async (domain: Domain): Promise<void> => {
  const { status, text } = await admin.post(`${pathOf(domain)}/verify`)
  assert.equal(status, 200, text)
}

describe('the worker', () => {
  test('verifies a new domain that uses the provider "service"', async () => {
    const { id } = await stage.makeProject()
    const domain = await stage.makeDomain(id, { mta_provider: 'service' })
    await shownAs(domain, 'registered', isRegistered)
    await publish(...domain.dns_records)
    await requestCheck(domain)
    const verified = await shownAs(domain, 'verified', isVerified)
    assert.ok(verified.dns_records.every(({ status }) => status === 'verified'))
  })

  test('verifies a new domain that uses SES and deregisters its old name', async () => {
    const { id } = await stage.makeProject()
    const domain = await stage.makeDomain(id, { name: 'first.example.com' })
    await shownAs(domain, 'registered', isRegistered)
    await admin.patch(pathOf(domain), { name: 'second.example.com' })
    const renamed = await shownAs(domain, 'registered again', isRegistered)
    await eventually('the old name is deregistered', () => !ses.has('first.example.com'))
    assert.equal(ses.has('second.example.com'), true)

    await publish(recordOf(renamed, 'ownership'), ...recordsOf(renamed, 'dkim'))
    ses.setDkim('second.example.com', 'SUCCESS')
    await requestCheck(domain)
    await shownAs(domain, 'verified', isVerified)
  })

  test('signs the audit log', async () => {
    await eventually(
      'there is a checkpoint',
      async () => (await database.query('select from control.audit_checkpoints limit 1')).length > 0,
    )
  })

  test('performs due work even if its job was lost', async () => {
    const { id } = await stage.makeProject()
    const domain = await stage.makeDomain(id)
    await database.query(`delete from jobs.job where name = 'identities.reconcile'`)
    // Normally inserted by the schedule every minute.
    await database.query(`insert into jobs.job (name, data) values ('identities.sweep', '{}')`)
    await shownAs(domain, 'registered', isRegistered)
  })

  test('relays a project’s mail counts and updates its reputation', async () => {
    const { id } = await stage.makeProject()
    await api.context.cells.all[0].mail.transaction((tx) =>
      countSending(tx, [
        { projectId: id, messageId: randomUUIDv7(), sent: 1000, bounced: 60, failed: 2, complained: 1 },
      ]),
    )
    const relayed = await eventually('the project has its statistics', async () => {
      const { body } = await admin.get(`/projects/${id}`)
      return body.bounced > 0 && body
    })
    assert.deepEqual(
      [relayed.bounced, relayed.failed, relayed.complained, relayed.reputation_score],
      [60, 2, 1, 50],
    )
  })

  test('finishes the current call when it is stopped and does not start another', async () => {
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
    // Another job arrives while the worker is stopping. The test does not hold the call until then, because
    // the call's timeout is only a few seconds.
    const creating = stage.makeDomain(id)
    released.resolve()
    await stopped
    assert.equal((await show(domain)).identity.state, 'registered')
    const late = await creating
    await sleep(1500)
    assert.equal((await show(late)).identity.state, 'registering')
    assert.deepEqual(
      ses.calls.slice(before).filter((call) => call.domain !== domain.name),
      [],
    )
  })

  test('logs no error', () => {
    assert.deepEqual(stage.errors(), [])
    assert.match(api.logLines.join(''), /"msg":"working"/)
  })
})
