import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { sql } from 'kysely'
import { insertPlans } from '../../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { Chance, seed } from '../../testing/harness/random.ts'
import { eventually, patienceMs } from '../../testing/harness/waiting.ts'
import { PosternError } from '../errors.ts'
import type { Db, ReadTx, Tx } from './db.ts'
import { isTimedOut } from './failures.ts'

const database = await testDatabase()
const failures: string[] = []
const opened = openDatabase(database, {
  timeouts: {},
  onError: (_error, what) => failures.push(what),
})
const db = opened.as('admin')

const planNamed = (name: string) => ({
  name,
  description: '',
  support_level: 'email',
  max_domains: 1,
  max_users: 1,
  max_mails_per_day: 1,
  max_mails_per_month: 1,
  price: 9.99,
})

const plansNamed = (name: string) => database.query('select * from control.plans where name = $1', [name])

const isUnavailable = (error: unknown): boolean =>
  error instanceof PosternError && error.code === 'unavailable'

test('a transaction commits when its work returns and rolls back when it throws', async () => {
  const id = await db.transaction(async (tx) => {
    const row = await tx
      .insertInto('control.plans')
      .values(planNamed('kept'))
      .returning('id')
      .executeTakeFirstOrThrow()
    return row.id
  })
  assert.equal(typeof id, 'number', 'identifiers are numbers')
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.insertInto('control.plans').values(planNamed('dropped')).execute()
      throw new Error('roll back')
    }),
    /roll back/,
  )
  assert.equal((await plansNamed('kept')).length, 1)
  assert.equal((await plansNamed('dropped')).length, 0)
})

test('a transaction with a swallowed statement error fails instead of committing', async () => {
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.insertInto('control.plans').values(planNamed('swallowed')).execute()
      await sql`select 1 / 0`.execute(tx).catch(() => {})
    }),
  )
  assert.equal((await plansNamed('swallowed')).length, 0)
})

test('a prepared statement whose result type a migration changes is prepared again', async () => {
  const pool = openDatabase(database, { poolSize: 8 }).as('admin')
  const read = () => pool.transaction((tx) => sql`select * from control.plans where id > ${0}`.execute(tx))
  // On every connection of the pool.
  for (let no = 0; no < 5; no++) await Promise.all(Array.from({ length: 8 }, read))
  const [before] = await database.query<{ count: number }>('select count(*)::int from control.plans')
  await database.query('alter table control.plans add column planted integer')
  const { rows } = await read()
  assert.equal(rows.length, before?.count)
  assert.ok(rows.every((row) => 'planted' in (row as object)))
  await database.query('alter table control.plans drop column planted')
  await read()
})

test('statements of read-write transactions are prepared, and those of read-only transactions are not', async () => {
  const prepared = (tx: ReadTx, marker: string) =>
    sql<{ count: number }>`
      select count(*)::int from pg_prepared_statements where statement like ${`%${marker}%`} and ${1} = 1`.execute(
      tx,
    )
  for (let no = 0; no < 8; no++) {
    await db.transaction((tx) => sql`select ${no}::int as written_marker`.execute(tx))
    await db.read((tx) => sql`select ${no}::int as read_marker`.execute(tx))
  }
  const counts = (marker: string) => db.transaction(async (tx) => (await prepared(tx, marker)).rows[0]?.count)
  assert.equal(await counts('written_marker'), 1)
  assert.equal(await counts('read_marker'), 0)
})

test('after-commit callbacks run in order after the commit, and never after a rollback', async () => {
  const calls: string[] = []
  await db.transaction(async (tx) => {
    tx.onCommit(() => void calls.push('first'))
    tx.onCommit(async () => {
      calls.push(`second, with ${(await plansNamed('callbacks')).length} row committed`)
    })
    await tx.insertInto('control.plans').values(planNamed('callbacks')).execute()
    assert.deepEqual(calls, [])
  })
  assert.deepEqual(calls, ['first', 'second, with 1 row committed'])

  await assert.rejects(
    db.transaction(async (tx) => {
      tx.onCommit(() => void calls.push('never'))
      throw new Error('no')
    }),
  )
  assert.equal(calls.length, 2)
})

test('a failed after-commit callback is logged and does not fail the transaction', async () => {
  const answer = await db.transaction(async (tx) => {
    tx.onCommit(() => {
      throw new Error('the callback failed')
    })
    return 'done'
  })
  assert.equal(answer, 'done')
  assert.ok(failures.includes('an after-commit callback failed'))
})

test('a deadlock is retried, and only the committed attempt runs its callbacks', async () => {
  await database.query(
    insertPlans({ name: 'name', max_domains: '0' }, `from unnest(array['dead', 'lock']) as name`),
  )
  let attempts = 0
  const callbacks: number[] = []
  let holders = 0
  const bothHoldALock = Promise.withResolvers<void>()
  const raise = (first: string, second: string) =>
    db.transaction(async (tx) => {
      const attempt = ++attempts
      tx.onCommit(() => void callbacks.push(attempt))
      for (const name of [first, second]) {
        await tx
          .updateTable('control.plans')
          .set((eb) => ({ max_domains: eb('max_domains', '+', 1) }))
          .where('name', '=', name)
          .execute()
        if (++holders >= 2) bothHoldALock.resolve()
        await bothHoldALock.promise
      }
    })
  await Promise.all([raise('dead', 'lock'), raise('lock', 'dead')])
  assert.equal(attempts, 3, 'one transaction ran twice')
  assert.equal(callbacks.length, 2)
  const rows = await database.query<{ max_domains: string }>(
    `select max_domains from control.plans where name in ('dead', 'lock')`,
  )
  assert.deepEqual(
    rows.map((row) => Number(row.max_domains)),
    [2, 2],
  )
})

test('a serialization failure is reported as unavailable after five attempts', async () => {
  let attempts = 0
  await assert.rejects(
    db.transaction(async (tx) => {
      attempts++
      await sql`do $$ begin raise exception 'conflict' using errcode = '40001'; end $$`.execute(tx)
    }),
    isUnavailable,
  )
  assert.equal(attempts, 5)
})

test('a read-only transaction cannot write', async () => {
  await assert.rejects(
    db.read((tx) => tx.insertInto('control.plans').values(planNamed('read')).execute()),
    /cannot execute INSERT in a read-only transaction/,
  )
  assert.equal((await plansNamed('read')).length, 0)
})

test('the server terminates an idle transaction, and the next one succeeds', async () => {
  const settings = await db.read(async (tx) => {
    const { rows } = await sql<{
      name: string
      setting: string
    }>`select name, setting from pg_settings where name in
      ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') order by name`.execute(tx)
    return rows
  })
  assert.deepEqual(settings, [
    { name: 'idle_in_transaction_session_timeout', setting: '10000' },
    { name: 'lock_timeout', setting: '5000' },
    { name: 'statement_timeout', setting: '15000' },
  ])
  await assert.rejects(
    db.transaction(async (tx) => {
      const pid = await backendOf(tx)
      await sql`set local idle_in_transaction_session_timeout = 50`.execute(tx)
      await eventually(
        'the server has ended the connection',
        async () => (await database.query('select from pg_stat_activity where pid = $1', [pid])).length === 0,
      )
      await sql`select 1`.execute(tx)
    }),
    isUnavailable,
  )
  await assert.rejects(
    db.transaction(async (tx) => {
      await sql`set local statement_timeout = 50`.execute(tx)
      await sql`select pg_sleep(5)`.execute(tx)
    }),
    isUnavailable,
  )
  assert.equal(await one(db), 1)
})

test('a connection lost during a transaction is reported as unavailable, and the pool recovers', async () => {
  await assert.rejects(
    db.transaction(async (tx) => {
      await terminate(await backendOf(tx))
      await sql`select 1`.execute(tx)
    }),
    isUnavailable,
  )
  assert.equal(await one(db), 1)
})

test('a connection lost during the commit reports an unknown outcome and leaves the pool usable', async () => {
  const poolSize = 4
  for (let round = 0; round <= poolSize; round++) {
    await assert.rejects(
      db.transaction(async (tx) => {
        await tx.insertInto('control.plans').values(planNamed('open')).execute()
        await terminate(await backendOf(tx))
      }),
      (error) =>
        isUnavailable(error) && /outcome is unknown.*Idempotency-Key/s.test((error as Error).message),
    )
  }
  assert.equal(await one(db), 1)
})

test('a connection with the wrong role is rejected and leaves the pool usable', async () => {
  // The URL overrides the startup options, as if a connection pooler dropped them.
  const url = `${database.url}?options=${encodeURIComponent('-c lock_timeout=0')}`
  const stray = openDatabase({ ...database, url }, { poolSize: 2 }).as('admin')
  for (let round = 0; round < 4; round++) {
    await assert.rejects(one(stray), /has role postern_app, not postern_admin/)
  }
})

test('a network failure is reported as unavailable after the timeout, and the pool recovers afterwards', async () => {
  const { hostname, port } = new URL(database.url)
  const links = new Set<Socket>()
  let isUp = true
  const proxy = createServer((inside) => {
    const outside = connect(Number(port), hostname)
    links.add(inside).add(outside)
    for (const socket of [inside, outside]) socket.on('error', () => {})
    inside.on('data', (chunk) => isUp && outside.write(chunk))
    outside.on('data', (chunk) => isUp && inside.write(chunk))
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const url = database.url.replace(`:${port}/`, `:${(proxy.address() as AddressInfo).port}/`)
  const far = openDatabase({ ...database, url }, { poolSize: 1, timeouts: { queryMs: 300 } }).as('admin')
  // On a busy machine, a query can exceed the short timeout even though the network is up.
  const answers = () =>
    eventually('the database answers', () =>
      one(far).catch((error) => (isUnavailable(error) ? undefined : Promise.reject(error))),
    )
  assert.equal(await answers(), 1)
  isUp = false
  await assert.rejects(
    one(far),
    (error: PosternError) => isUnavailable(error) && isTimedOut(error.cause),
    'the query timeout ends the wait',
  )
  isUp = true
  for (const link of links) link.destroy()
  assert.equal(await answers(), 1)
  for (const link of links) link.destroy()
  proxy.close()
})

test('an array arrives as it was sent, whatever its elements contain', async () => {
  const texts = ['', ' ', 'NULL', 'null', '"', '\\', '\\"', '{}', 'a,b', "it's", '\n\t', 'é😀', '$1', null]
  const chance = new Chance(seed)
  for (let no = 0; no < 200; no++) {
    texts.push(Array.from({ length: chance.below(6) }, () => chance.pick([...'"\\,{} aN\'\r'])).join(''))
  }
  const numbers = [0, -1, 1.5, 2 ** 53 - 1, null]
  const [row] = await db.read(async (tx) => {
    const { rows } = await sql<Record<string, unknown>>`
      select ${texts}::text[] as texts, ${numbers}::float8[] as numbers, ${[true, false, null]}::boolean[] as booleans,
             ${[[1, 2]]}::int[] as nested, ${[Buffer.from('a')]}::bytea[] as bytes, ${[]}::text[] as none`.execute(
      tx,
    )
    return rows
  })
  assert.deepEqual(
    row,
    { texts, numbers, booleans: [true, false, null], nested: [[1, 2]], bytes: [Buffer.from('a')], none: [] },
    `seed ${seed}`,
  )
})

test('an int8 above 2^53 is rejected, not rounded', async () => {
  await assert.rejects(
    db.read((tx) => sql`select 9007199254740993::int8`.execute(tx)),
    /out of range/,
  )
})

test('Db, ReadTx and Tx are not assignable to each other, except Tx to ReadTx (compile time)', () => {
  const needsTx = (_tx: Tx) => {}
  const needsReadTx = (_tx: ReadTx) => {}
  const needsDb = (_db: Db) => {}
  const never = () => {
    // @ts-expect-error a plane's Db is not a transaction
    needsTx(db)
    // @ts-expect-error a plane's Db is not a read transaction
    needsReadTx(db)
    void db.read(async (tx) => {
      // @ts-expect-error a read transaction cannot write
      needsTx(tx)
      needsReadTx(tx)
    })
    void db.transaction(async (tx) => {
      needsTx(tx)
      needsReadTx(tx)
      // @ts-expect-error a transaction cannot open another one
      needsDb(tx)
    })
    // @ts-expect-error the customer plane requires a project before any query
    void opened.asCustomer().read(async () => {})
  }
  assert.equal(typeof never, 'function')
})

async function backendOf(tx: Tx): Promise<number | undefined> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
  return rows[0]?.pid
}

/** Returns when the server process has ended. */
async function terminate(pid: number | undefined): Promise<void> {
  const [row] = await database.query('select pg_terminate_backend($1, $2) as ended', [pid, patienceMs])
  assert.deepEqual(row, { ended: true })
}

async function one(plane: Db): Promise<number | undefined> {
  const { rows } = await plane.read((tx) => sql<{ one: number }>`select 1 as one`.execute(tx))
  return rows[0]?.one
}
