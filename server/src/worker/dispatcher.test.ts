import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../context/context.ts'
import { Acceptance } from '../core/mail/messages/acceptance.ts'
import { readDraft } from '../core/mail/messages/draft.ts'
import { type ServiceOptions, ServiceProvider, smtpAddressOf } from '../providers/smtp-transport.ts'
import { ampleByteLimits } from '../testing/fixtures/byte-limits.ts'
import { fixtures } from '../testing/fixtures/fixtures.ts'
import { startApi } from '../testing/harness/api.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { signedIn } from '../testing/harness/client.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { eventually, patienceMs } from '../testing/harness/waiting.ts'
import { Sink } from '../testing/peers/sink.ts'
import { SmtpPeer } from '../testing/peers/smtp-peer.ts'
import { Dispatcher } from './dispatcher.ts'

/** The worker with a real SMTP server, from the queue to the recorded result. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeDomain } = fixtures(database, admin)
const { context } = api
const acceptance = new Acceptance(context.cells.all[0].mail, ['service'], ampleByteLimits)

async function makeSender() {
  const { id } = await makeProject()
  const { name } = await makeDomain(id, { mta_provider: 'service', status: 'verified' })
  await database.query(`update control.dkim_keys set state = 'active' where project_id = $1`, [id])
  return { id, name }
}

type Sender = Awaited<ReturnType<typeof makeSender>>

let numbered = 0

async function send({ id, name }: Sender, { to = [`r${++numbered}@example.net`], isTest = false } = {}) {
  const draft = readDraft({ from: `Shop <a@${name}>`, to, subject: 'Grüße', text: 'Hello' }, Date.now())
  const answer = await acceptance.accept({
    sender: { projectId: id, apiKey: isTest ? { id: 1, isTest, domainId: null } : null, userId: 1 },
    mails: [draft],
  })
  const [outcome] = 'outcomes' in answer ? answer.outcomes : []
  assert.ok(outcome && 'accepted' in outcome)
  return { id: outcome.accepted.id, to: to[0] ?? '' }
}

/** Starts a dispatcher with its own provider. */
function dispatcherTo(host: string, changes: Partial<ServiceOptions> = {}): Dispatcher {
  const service = new ServiceProvider({
    hosts: [smtpAddressOf(new URL(host))],
    name: 'postern.example',
    limits: { firstBackoffMs: 200, maxBackoffMs: 400 },
    ...changes,
  })
  const { dispatch, log } = workerDeps(context)
  const dispatcher = new Dispatcher({
    ...dispatch,
    db: context.cells.all[0].mail,
    log,
    transports: { service },
  })
  dispatcher.start()
  cleanUp(async () => {
    await dispatcher.stop()
    service.close()
  })
  return dispatcher
}

async function recipient(id: string): Promise<{ status: string; reply: string | null } | undefined> {
  const [row] = await database.query<{ status: string; reply: string | null }>(
    'select status, reply from mail.recipients where message_id = $1',
    [id],
  )
  return row
}

const isPublished = async (id: string): Promise<boolean> =>
  (await database.query('select from mail.attempt_results where message_id = $1', [id])).length === 0

/** Returns the provider's reply after the recipient has this status and its events are written. */
async function settled(id: string, status: string): Promise<string | null> {
  const row = await eventually(`the recipient of message ${id} is ${status}`, async () => {
    const now = await recipient(id)
    return now?.status === status && (await isPublished(id)) && now
  }).catch(async (error: Error) => {
    throw new Error(`${error.message}. It is: ${JSON.stringify(await recipient(id))}`)
  })
  return row.reply
}

const sink = await Sink.open()
const at = await makeSender()

describe('the dispatcher', () => {
  const dispatcher = dispatcherTo(`smtp://127.0.0.1:${sink.port}`)

  test('sends a signed message with its own return path', async () => {
    const { id, to } = await send(at)
    const delivery = await sink.next((one) => one.to.includes(to))
    assert.match(delivery.from, new RegExp(`^bounce-[a-z2-7]{48}@bounces\\.${at.name}$`))
    const text = delivery.raw.toString()
    assert.match(text, new RegExp(`\r\nMessage-ID: <${id}@${at.name}>\r\n`, 'i'))
    assert.match(text, new RegExp(`^DKIM-Signature: .*d=${at.name};`, 's'))
    await settled(id, 'sent')
    const [attempt] = await database.query<{ outcome: string; host: string }>(
      'select outcome, host from mail.attempts where message_id = $1',
      [id],
    )
    assert.equal(attempt?.outcome, 'sent')
    assert.equal((await database.query('select from mail.dispatch where message_id = $1', [id])).length, 0)
  })

  test('sends each recipient a separate message', async () => {
    const to = ['x1@example.net', 'x2@example.net']
    const { id } = await send(at, { to })
    const paths = await Promise.all(
      to.map(async (one) => (await sink.next((delivery) => delivery.to.includes(one))).from),
    )
    assert.equal(new Set(paths).size, 2)
    await settled(id, 'sent')
  })

  test('bounces mail to an unknown mailbox and suppresses the address', async () => {
    sink.treat('nobody@example.net', { at: 'rcpt', answer: '550 5.1.1 No such user' })
    const { id } = await send(at, { to: ['nobody@example.net'] })
    assert.match((await settled(id, 'bounced')) ?? '', /5\.1\.1 No such user/)
    const [row] = await database.query(
      `select reason from mail.suppressions where project_id = $1 and address = 'nobody@example.net'`,
      [at.id],
    )
    assert.deepEqual(row, { reason: 'bounce' })
  })

  test('fails mail that is permanently rejected for another reason', async () => {
    sink.treat('big@example.net', { at: 'data', answer: '552 5.3.4 Too large' })
    const { id } = await send(at, { to: ['big@example.net'] })
    await settled(id, 'failed')
  })

  test('defers mail that is temporarily rejected', async () => {
    sink.treat('later@example.net', { at: 'rcpt', answer: '451 4.3.0 Later', times: 1 })
    const { id, to } = await send(at, { to: ['later@example.net'] })
    await settled(id, 'deferred')
    await database.query(`update mail.dispatch set due_at = now() where message_id = $1`, [id])
    await sink.next((one) => one.to.includes(to))
    await settled(id, 'sent')
  })

  test('does not send mail accepted with a test key but records everything else', async () => {
    const { id, to } = await send(at, { isTest: true })
    await settled(id, 'delivered')
    assert.equal(sink.received.filter((one) => one.to.includes(to)).length, 0)
  })

  test('fails mail whose identity no longer has a key', async () => {
    const gone = await makeSender()
    await database.query(`update control.identities set state = 'retired' where project_id = $1`, [gone.id])
    const { id } = await send(gone)
    assert.match((await settled(id, 'failed')) ?? '', /DKIM key were deleted/)
  })

  test('finishes all mail in flight before it stops', async () => {
    const sent = await Promise.all(Array.from({ length: 30 }, () => send(at)))
    await sink.next((one) => sent.some(({ to }) => one.to.includes(to)))
    await dispatcher.stop()
    const leased = await database.query(`select from mail.dispatch where state = 'leased'`)
    assert.equal(leased.length, 0)
    // The next worker sends the remaining mail.
    const next = dispatcherTo(`smtp://127.0.0.1:${sink.port}`)
    for (const { id } of sent) await settled(id, 'sent')
    for (const { to } of sent) assert.equal(sink.received.filter((one) => one.to.includes(to)).length, 1)
    await next.stop()
  })
})

describe('an unavailable provider', () => {
  test('receives its mail when it is available again', async () => {
    const peer = await SmtpPeer.start()
    await peer.stop()
    const dispatcher = dispatcherTo(peer.url)
    const { id } = await send(await makeSender())
    await eventually('the provider was tried', async () => {
      const tried = `select from mail.attempts where message_id = $1 and outcome = 'unreachable'`
      return (await database.query(tried, [id])).length > 0
    })
    assert.equal((await recipient(id))?.status, 'queued')
    await peer.listen()
    await settled(id, 'sent')
    assert.equal(peer.mails.length, 1)
    await dispatcher.stop()
  })
})

describe('a project with slow mail', () => {
  test('leaves slots for others', async () => {
    const sink = await Sink.open()
    const sessions = 10
    // The worker's timeout is longer than the test.
    const dispatcher = dispatcherTo(`smtp://127.0.0.1:${sink.port}`, {
      limits: { sessions },
      timeouts: { silenceMs: 10 * patienceMs, mailMs: 10 * patienceMs },
    })
    const [slow, quick] = [await makeSender(), await makeSender()]
    for (let count = 0; count < 2 * sessions; count++) {
      const to = `slow${count}@example.net`
      sink.treat(to, { at: 'data', answer: 'hang', times: 1 })
      await send(slow, { to: [to] })
    }
    // The maximum for one lane, which is less than the total number of slots (core/mail/dispatch/slots.ts).
    const fourFifths = (4 * sessions) / 5
    await eventually('the slow project has its share', () => sink.refused.length === fourFifths)
    const { to } = await send(quick)
    await sink.next((one) => one.to.includes(to))
    assert.equal(sink.refused.length, fourFifths, 'all slow mail is still waiting for a reply')
    // Releases the hanging sessions.
    await sink.close()
    await dispatcher.stop()
  })
})
