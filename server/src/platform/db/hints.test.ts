import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { type HintName, HintSender, hintChannel } from './hint-sender.ts'
import { HintListener, type HintListenerOptions, Waiter } from './hints.ts'

const database = await testDatabase()
const errors: string[] = []
const opened = openDatabase(database, { onError: (_error, what) => errors.push(what) })
const db = opened.as('admin')

const observer = new pg.Client({ connectionString: database.url })
observer.on('error', () => {})
await observer.connect()
cleanUp(() => observer.end())
const observed: string[] = []
observer.on('notification', ({ payload = '' }) => observed.push(payload))
await observer.query(`listen ${hintChannel}`)

let marks = 0

/** Returns the hints that arrived since the last call. Notifications arrive in the order of the commits. */
async function observedUntilNow(): Promise<string[]> {
  const mark = `mark ${++marks}`
  await database.query('select pg_notify($1, $2)', [hintChannel, mark])
  await eventually('the mark arrives', () => observed.includes(mark))
  return observed.splice(0, observed.indexOf(mark) + 1).slice(0, -1)
}

const never = new AbortController().signal
const anHourMs = 3_600_000

/** The server processes that listen, except for the observer's. */
const listeners = (applicationName: string) =>
  database.query<{ pid: number }>(
    `select pid from pg_stat_activity
      where datname = current_database() and application_name = $1 and query = 'listen ${hintChannel}'`,
    [applicationName],
  )

describe('a hint', () => {
  test('is sent after the commit', async () => {
    await db.transaction(async (tx) => {
      tx.hint('jobs')
      tx.hint('jobs')
      assert.deepEqual(await observedUntilNow(), [])
    })
    await eventually('the hint arrives', () => observed.includes('jobs'))
    assert.deepEqual(await observedUntilNow(), ['jobs'])
  })

  test('is not sent after a rollback or a dry run', async () => {
    await assert.rejects(
      db.transaction(async (tx) => {
        tx.hint('mail')
        throw new Error('roll back')
      }),
    )
    await db.dryRun(async (tx) => tx.hint('webhooks'))
    await db.transaction(async (tx) => tx.hint('outbox'))
    await eventually('the third hint arrives', () => observed.includes('outbox'))
    assert.deepEqual(await observedUntilNow(), ['outbox'])
  })

  test('can be sent by every role', async () => {
    const roles = [opened.as('mail'), opened.as('identity'), opened.asCustomer().forProject(1)]
    for (const role of roles) {
      await role.transaction(async (tx) => tx.hint('mail'))
      await eventually('the hint arrives', () => observed.includes('mail'))
      await observedUntilNow()
    }
  })
})

describe('a sender', () => {
  test('sends the first hint immediately, and those of a pause in one statement', async () => {
    const sent: (readonly HintName[])[] = []
    const notify = async (names: readonly HintName[]) => void sent.push(names)
    const pauses: PromiseWithResolvers<void>[] = []
    const sender = new HintSender(() => {
      const pause = Promise.withResolvers<void>()
      pauses.push(pause)
      return pause.promise
    })
    const nextPause = (count: number) => eventually(`pause ${count}`, () => pauses[count - 1])
    sender.send(new Set(['mail', 'webhooks']), notify)
    assert.deepEqual(sent, [['mail', 'webhooks']])
    const first = await nextPause(1)
    for (let count = 0; count < 1000; count++) sender.send(new Set(['outbox', 'mail']), notify)
    assert.equal(sent.length, 1)
    first.resolve()
    const second = await nextPause(2)
    assert.deepEqual(sent, [
      ['mail', 'webhooks'],
      ['outbox', 'mail'],
    ])
    sender.send(new Set(), notify)
    second.resolve()
    await second.promise
    await eventually('the next hint is sent immediately', () => {
      if (pauses.length === 2) sender.send(new Set(['jobs']), notify)
      return pauses.length === 3
    })
    assert.deepEqual(sent.slice(2), [['jobs']])
  })

  test('continues after a statement that fails', async () => {
    const sent: (readonly HintName[])[] = []
    const sender = new HintSender(async () => {})
    sender.send(new Set(['mail']), () => Promise.reject(new Error('the database is unavailable')))
    sender.send(new Set(['jobs']), () => Promise.reject(new Error('the database is unavailable')))
    await eventually('a later hint is sent', () => {
      sender.send(new Set(['mail']), async (names) => void sent.push(names))
      return sent.length > 0
    })
    assert.deepEqual(sent[0], ['mail'])
  })
})

describe('a listener', () => {
  test('wakes the waiters for a name', async () => {
    const mail = opened.hints.waiter('mail')
    const jobs = opened.hints.waiter('jobs')
    await eventually('it listens', () => mail.isListening)
    assert.deepEqual([await mail.wait(anHourMs, never), await jobs.wait(anHourMs, never)], [true, true])
    const woken: string[] = []
    const stopping = new AbortController()
    const waiting = jobs.wait(anHourMs, stopping.signal).then((isWoken) => isWoken && woken.push('jobs'))
    const isWoken = mail.wait(anHourMs, never)
    await db.transaction(async (tx) => tx.hint('mail'))
    assert.equal(await isWoken, true)
    stopping.abort()
    await waiting
    assert.deepEqual(woken, [])
    mail.close()
    jobs.close()
  })

  test('connects for the first waiter only and disconnects after the last', async () => {
    const { hints } = openDatabase(database, { applicationName: 'counted' })
    const [first, second] = [hints.waiter('mail'), hints.waiter('outbox')]
    await eventually('it listens', () => hints.isListening)
    assert.equal((await listeners('counted')).length, 1)
    first.close()
    assert.equal(hints.isListening, true)
    second.close()
    await eventually('it is disconnected', async () => (await listeners('counted')).length === 0)
    const third = hints.waiter('jobs')
    await eventually('it listens again', () => hints.isListening)
    third.close()
  })

  test('that loses its connection wakes all waiters, connects again and wakes them again', async () => {
    const lost: string[] = []
    const { hints } = openDatabase(database, {
      applicationName: 'lost',
      onError: (_error, what) => lost.push(what),
    })
    const waiter = hints.waiter('mail')
    await eventually('it listens', () => waiter.isListening)
    assert.equal(await waiter.wait(anHourMs, never), true)
    const woken = waiter.wait(anHourMs, never)
    const [before] = await listeners('lost')
    await database.query('select pg_terminate_backend($1)', [before?.pid])
    assert.equal(await woken, true)
    await eventually('it listens again', () => waiter.isListening)
    assert.equal(await waiter.wait(anHourMs, never), true)
    const [after] = await listeners('lost')
    assert.notEqual(after?.pid, before?.pid)
    assert.deepEqual(
      lost.filter((what) => what.startsWith('hints')),
      ['hints are not received; polling more often until they are'],
    )
    waiter.close()
  })

  test('does not rely on a connection that receives no notifications, such as one through a pooler', async () => {
    const reports: unknown[] = []
    let connections = 0
    const { listener } = listenerWith({
      async connect(stream) {
        connections++
        const client = new pg.Client({ connectionString: database.url, stream: () => stream })
        await client.connect()
        return client
      },
      notify: async () => {},
      onError: (error) => reports.push(error),
    })
    const waiter = listener.waiter('mail')
    await eventually('it has tried several times', () => connections >= 3)
    assert.equal(waiter.isListening, false)
    assert.equal(reports.length, 1, 'logged once')
    assert.match(String(reports[0]), /did not arrive/)
    assert.equal(await waiter.wait(1, never), false, 'a waiter is only a pause')
    waiter.close()
  })

  test('detects that notifications no longer arrive', async () => {
    let isDelivering = true
    const { listener, connect } = listenerWith({
      notify: (payload) =>
        isDelivering
          ? database.query('select pg_notify($1, $2)', [hintChannel, payload])
          : Promise.resolve(undefined),
    })
    const waiter = listener.waiter('mail')
    await eventually('it listens', () => waiter.isListening)
    isDelivering = false
    await eventually('it does not listen', () => !waiter.isListening)
    isDelivering = true
    await eventually('it listens again', () => waiter.isListening)
    assert.ok(connect.count >= 2)
    waiter.close()
  })

  test('that cannot connect stops immediately', async () => {
    const { listener } = listenerWith({ connect: () => new Promise(() => {}) })
    listener.waiter('mail')
    await listener.close()
    assert.equal(listener.isListening, false)
  })
})

function listenerWith(changes: Partial<HintListenerOptions>) {
  const connect = { count: 0 }
  const listener = new HintListener({
    async connect(stream) {
      connect.count++
      const client = new pg.Client({ connectionString: database.url, stream: () => stream })
      client.on('error', () => {})
      await client.connect()
      return client
    },
    notify: (payload) => database.query('select pg_notify($1, $2)', [hintChannel, payload]),
    onError: () => {},
    timings: { echoEveryMs: 50, echoTimeoutMs: 500, firstBackoffMs: 10, maxBackoffMs: 10 },
    ...changes,
  })
  cleanUp(() => listener.close())
  return { listener, connect }
}

describe('a waiter', () => {
  test('remembers one wake that comes while it does not wait', async () => {
    const waiter = new Waiter()
    waiter.wake()
    waiter.wake()
    assert.equal(await waiter.wait(anHourMs, never), true)
    assert.equal(await waiter.wait(1, never), false)
  })

  test('ends when the signal is aborted, before or during the wait', async () => {
    const stopping = new AbortController()
    const waiter = new Waiter()
    const waiting = waiter.wait(anHourMs, stopping.signal)
    stopping.abort()
    assert.equal(await waiting, false)
    assert.equal(await waiter.wait(anHourMs, stopping.signal), false)
  })
})

test('no error was logged', () => assert.deepEqual(errors, []))
