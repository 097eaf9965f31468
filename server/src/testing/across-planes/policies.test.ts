import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { endExpired } from '../../core/control/interventions/expiry.ts'
import { runPolicies } from '../../core/control/policies/run-policies.ts'
import { countSending } from '../../core/mail/counters/counters.ts'
import { uuid7 } from '../../platform/ids.ts'
import { customers } from '../fixtures/customers.ts'
import { insertProjects } from '../fixtures/project-rows.ts'
import { senders } from '../fixtures/sending-projects.ts'
import { startApi } from '../harness/api.ts'
import { Client } from '../harness/client.ts'
import { databaseNow, openCells, testDatabase } from '../harness/database.ts'
import { feedbackIn } from '../harness/feedback.ts'
import { VirtualTime } from '../harness/virtual-time.ts'

/**
 * An abuser among 200 projects, with the shipped policies enforced: mail accepted by the API, reports applied by the intake's
 * function, evaluation in virtual time.
 */
const database = await testDatabase()
const api = await startApi(database)
const { admin, member } = await customers(api, database)
const { makeSender } = senders(api, database, admin)
const time = new VirtualTime(database)

type Sender = Awaited<ReturnType<typeof makeSender>>

/** Sends mail and reports its results, some of them as bounces. */
async function sendAndReport(
  { secret, domain }: Pick<Sender, 'secret' | 'domain'>,
  at: { url: string; feedback: ReturnType<typeof feedbackIn> },
  { count, bounced }: { count: number; bounced: number },
): Promise<void> {
  const program = new Client(at.url, secret, '/v1')
  for (let sent = 0; sent < count; sent += 100) {
    const response = await program.post('/messages/batch', {
      messages: Array.from({ length: 100 }, (_, n) => ({
        ...{ from: `Shop <hello@${domain.name}>`, to: [`person${sent + n}@example.net`] },
        ...{ subject: 'Offers', text: 'Only today.' },
      })),
    })
    assert.equal(response.status, 202)
    const ids: string[] = response.body.data.map(({ id }: { id: string }) => id)
    await Promise.all(
      ids.map((messageId, n) =>
        at.feedback.apply({
          ...{ messageId, recipientNo: 0, attempt: 1, shard: shards.get(domain.id) ?? 0 },
          // Spread evenly, so that the rate is the same in every part.
          ...{ kind: n < (100 * bounced) / count ? 'bounced' : 'delivered', status: null, diagnostic: null },
          digest: createHash('sha256').update(messageId).digest().subarray(0, 16),
        }),
      ),
    )
  }
}

/** By the id of the project's domain. */
const shards = new Map<number, number>()

async function makeKnownSender(): Promise<Sender> {
  const sender = await makeSender()
  const [row] = await database.query<{ shard: number }>('select postern.shard_of($1) as shard', [sender.id])
  shards.set(sender.domain.id, row?.shard ?? 0)
  return sender
}

const kindsOf = async (projectId: number): Promise<string[]> =>
  (
    await database.query<{ kind: string }>(
      `select kind from control.interventions where project_id = $1 and source = 'policy' order by id`,
      [projectId],
    )
  ).map(({ kind }) => kind)

/** Evaluates everything up to and including the five minutes in which the database's clock is. */
async function evaluateAfter(at: Date): Promise<void> {
  await time.set(new Date((Math.floor(at.getTime() / 300_000) + 1) * 300_000 + 66_000))
  await runPolicies(time.deps)
}

test('the shipped policies lock an abuser and slow down a careless sender, and touch nobody else', async () => {
  await database.query(`update control.policies set mode = 'enforce'`)
  const [abuser, careless] = [await makeKnownSender(), await makeKnownSender()]
  const others = await insertProjects(database, 198)
  const owner = await member(abuser.id, 'admin')
  const started = await databaseNow(database)
  await time.set(started)
  await runPolicies(time.deps)

  const now = { url: api.url, feedback: feedbackIn(openCells(database)) }
  await sendAndReport(abuser, now, { count: 400, bounced: 100 })
  await sendAndReport(careless, now, { count: 600, bounced: 72 })
  await time.mail.transaction((tx) =>
    countSending(
      tx,
      others.map((projectId) => ({ projectId, messageId: uuid7(started.getTime()), sent: 600, bounced: 10 })),
    ),
  )
  const lastMailAt = await databaseNow(database)
  await evaluateAfter(lastMailAt)
  assert.deepEqual(await kindsOf(abuser.id), ['lock'])
  assert.deepEqual(await kindsOf(careless.id), ['warn', 'pace'])
  const refused = await abuser.program.post('/messages', {
    ...{ from: `hello@${abuser.domain.name}`, to: ['a@example.net'], subject: 'More', text: 'More' },
  })
  assert.equal(refused.status, 403, refused.text)

  const notices = await owner.get(`/projects/${abuser.id}/notices`)
  const [notice] = notices.body.data
  assert.match(notice.public_note, /At least 20 % of your mail/)
  const [lock] = (await admin.get(`/projects/${abuser.id}/interventions`)).body.data
  assert.match(
    lock.reason,
    /^The bounce rate was [\d.]+ % \(\d+ of [34]\d\d recipients\) in the 60 minutes before /,
  )
  const delay = Date.parse(lock.created_at) - lastMailAt.getTime()
  assert.ok(delay < 20 * 60_000, `locked ${delay} ms of virtual time after its last mail`)
  assert.ok(!notices.text.includes(lock.reason) && !notices.text.includes('25 %'), notices.text)

  // A day later the lock has ended, and the project sends clean mail.
  const name = new URL(database.url).pathname.slice(1)
  await database.query(`alter database ${name} set postern.clock_offset = '25 hours'`)
  await time.set(new Date((await databaseNow(database)).getTime() + 25 * 3600_000))
  await endExpired(time.db)
  await runPolicies(time.deps)
  const later = { url: (await startApi(database)).url, feedback: feedbackIn(openCells(database)) }
  await sendAndReport(abuser, later, { count: 400, bounced: 2 })
  await evaluateAfter(time.at)
  await time.pass(5)
  await runPolicies(time.deps)
  assert.deepEqual(await kindsOf(abuser.id), ['lock'])
  const touched = await database.query<{ project_id: number }>(
    'select distinct project_id::int from control.interventions order by 1',
  )
  assert.deepEqual(
    touched.map(({ project_id }) => project_id),
    [abuser.id, careless.id].toSorted((one, other) => one - other),
  )
})
