import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { exposition } from '../platform/telemetry/metrics.ts'
import { assertProblem } from '../testing/expectations/problem.ts'
import { senders } from '../testing/fixtures/sending-projects.ts'
import { startApi } from '../testing/harness/api.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { Client, signedIn } from '../testing/harness/client.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { openInbound, someMail } from '../testing/harness/inbound-harness.ts'
import { openSubmission, plainOf, someText, submit } from '../testing/harness/submission-harness.ts'
import { eventually } from '../testing/harness/waiting.ts'
import { startMtaInbox } from '../testing/peers/mta-inbox.ts'
import { Dispatcher } from '../worker/dispatcher.ts'
import { workerDeps } from './context.ts'

/**
 * A cell with a stale control replica. In this test, the control database and the cell are the same
 * database under two addresses, and the test writes the rows that replication would write.
 * e2e/17-two-cells.test.ts stops a real subscription.
 */
const database = await testDatabase()
const mta = await startMtaInbox()
const api = await startApi(database, {
  POSTERN_CELLS: JSON.stringify([{ name: 'a', shards: '0-1023', url: database.url }]),
  POSTERN_CELL: 'a',
  POSTERN_MTA_HOSTS: mta.url,
})
const admin = await signedIn(api)
const { makeSender, makeRoute } = senders(api, database, admin)
const { open } = await openSubmission(api)
const [cell] = api.context.cells.all

const beat = (ago: string) =>
  database.query(
    `insert into control.heartbeat (at) values (postern.now() - $1::interval)
     on conflict (id) do update set at = excluded.at`,
    [ago],
  )

const anonymous = new Client(api.url, '', '')
const becomes = async (ago: string, replica?: 'stale') => {
  await beat(ago)
  await eventually(`the process has read a heartbeat from ${ago} ago`, async () => {
    const { status, body } = await anonymous.get('/readyz')
    assert.equal(status, 200, 'inbound mail is still accepted, so the process is ready')
    return body.replica === replica
  })
}

const mailOf = ({ domain }: { domain: { name: string } }) => ({
  ...{ from: `Shop <hello@${domain.name}>`, to: ['a@example.net'], subject: 'Hello', text: 'Hello' },
})

await beat('0 seconds')
const sender = await makeSender()
await database.query(`update control.dkim_keys set state = 'active' where project_id = $1`, [sender.id])
const sentCount = async () =>
  (await database.query('select from mail.messages where project_id = $1', [sender.id])).length

describe('a cell whose control replica is older than the limit', () => {
  test('accepts no mail by HTTP, in batches or by SMTP, and states when to retry', async () => {
    await sender.send()
    const client = await open(sender.secret)
    await becomes('301 seconds', 'stale')
    const before = await sentCount()
    const refused = await sender.program.post('/messages', mailOf(sender))
    assertProblem(refused, 503, 'unavailable')
    assert.equal(refused.headers.get('retry-after'), '30')
    assertProblem(
      await sender.program.post('/messages/batch', { messages: [mailOf(sender), mailOf(sender)] }),
      503,
      'unavailable',
    )
    assert.match(await submit(client, someText(sender.domain.name)), /^451 4\.3\.0/)
    assert.equal(await sentCount(), before)

    await becomes('0 seconds')
    await sender.send()
    assert.match(await submit(client, someText(sender.domain.name)), /^250 /)
  })

  test('looks up API keys in control, not in the replica', async () => {
    const calls: string[] = []
    for (const [name, db] of Object.entries({ copy: cell.mail, control: api.context.db.everywhere })) {
      const readOne = db.readOne.bind(db)
      db.readOne = (query) => {
        calls.push(name)
        return readOne(query)
      }
    }
    const lookedUpIn = async () => {
      calls.length = 0
      await sender.program.get('/messages')
      return calls[0]
    }
    await becomes('301 seconds', 'stale')
    assert.equal(await lookedUpIn(), 'control')
    await becomes('0 seconds')
    assert.equal(await lookedUpIn(), 'copy')
  })

  test('claims nothing until the replica is fresh again', async () => {
    const id = await sender.send({ to: ['waits@example.net'] })
    await becomes('301 seconds', 'stale')
    const { dispatch, log } = workerDeps(api.context)
    let calls = 0
    const { mayClaim } = dispatch
    assert.ok(mayClaim)
    const dispatcher = new Dispatcher({
      ...{ ...dispatch, db: cell.mail, log },
      mayClaim() {
        calls++
        return mayClaim()
      },
    })
    cleanUp(() => dispatcher.stop())
    dispatcher.start()
    await eventually('the dispatcher has checked five times', () => calls >= 5)
    const states = await database.query<{ state: string; attempt: number }>(
      'select state, attempt from mail.dispatch where message_id = $1',
      [id],
    )
    assert.deepEqual(states, [{ state: 'ready', attempt: 0 }])
    assert.equal(mta.mails.length, 0)
    await becomes('0 seconds')
    await eventually('it is handed over', () => mta.mails.some(({ to }) => to.includes('waits@example.net')))
  })

  test('accepts inbound mail', async () => {
    await makeRoute(sender.id, {
      domain_id: sender.domain.id,
      match: 'catch_all',
      address: null,
      action: 'drop',
    })
    await becomes('301 seconds', 'stale')
    const inbound = await openInbound(api, database)
    const client = await inbound.open()
    const reply = await submit(client, someMail(), {
      from: 'ada@example.com',
      to: [`support@${sender.domain.name}`],
    })
    assert.match(reply, /^250 /)
    assert.equal((await inbound.inboundOf(sender.id)).length, 1)
    await becomes('0 seconds')
  })

  test('temporarily rejects SMTP authentication while control is unreachable', async () => {
    await becomes('301 seconds', 'stale')
    const client = await open()
    const { everywhere } = api.context.db
    const { readOne } = everywhere
    everywhere.readOne = () => Promise.reject(new Error('control is unreachable'))
    try {
      assert.match((await client.say(plainOf(sender.secret))) ?? '', /^454 4\.7\.0/)
    } finally {
      everywhere.readOne = readOne
    }
    await becomes('0 seconds')
  })

  test('exports its age as a metric', async () => {
    const shown = async () =>
      Number(/^postern_control_replica_age_seconds (.+)$/m.exec(await exposition())?.[1] ?? Number.NaN)
    await becomes('0 seconds')
    assert.ok((await shown()) < 300)
    await becomes('1 hour', 'stale')
    assert.ok((await shown()) >= 3600)
  })
})

describe('an installation without cells', () => {
  test('reads no heartbeat and exports no age', async () => {
    const single = await startApi(await testDatabase())
    assert.equal(single.context.replicas.size, 0)
    assert.equal(workerDeps(single.context).dispatch.mayClaim, undefined)
    assert.equal(workerDeps(single.context).hasCopies, false)
  })
})
