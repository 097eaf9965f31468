import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { describe, test } from 'node:test'
import type { UnscopedDb } from '../../platform/db/db.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { openDatabase, testDatabase } from '../../testing/harness/database.ts'
import { eventually } from '../../testing/harness/waiting.ts'
import { announceProcess, listProcesses } from './processes.ts'

const database = await testDatabase()
const db = openDatabase(database).as('mail')
const deps = { db, log: createLogger('silent'), version: '1.2.3', cell: null, everyMs: 10 }

const list = () => db.read(listProcesses)
const onlyOne = (isAlive: boolean) =>
  eventually(`one process is ${isAlive ? 'alive' : 'dead'}`, async () => {
    const [only, ...others] = await list()
    return others.length === 0 && only?.is_alive === isAlive && only
  })

/** As after a crash: the row stays and is not written any more. */
const insertDead = (kind: string, host: string, ago: string) =>
  database.query(
    `insert into postern.processes (id, kind, host, version, started_at, seen_at)
     values (gen_random_uuid(), $1, $2, '1.2.2', postern.now() - interval '2 days', postern.now() - $3::interval)`,
    [kind, host, ago],
  )

describe('a running process', () => {
  test('is alive until it stops, and then gone', async () => {
    const running = announceProcess({ ...deps, kind: 'worker' })
    const first = await onlyOne(true)
    assert.deepEqual(
      [first.kind, first.host, first.version, first.cell],
      ['worker', hostname(), '1.2.3', null],
    )
    await eventually('it is seen again', async () => ((await list())[0]?.seen_at ?? 0) > first.seen_at)
    const [later] = await list()
    assert.deepEqual(later?.started_at, first.started_at)
    await running.stop()
    assert.deepEqual(await list(), [])
  })

  test('replaces a dead process of its kind on its host, and no other', async () => {
    await insertDead('api', hostname(), '2 minutes')
    await insertDead('worker', hostname(), '2 minutes')
    await insertDead('api', 'elsewhere', '2 minutes')
    await insertDead('api', hostname(), '30 seconds')
    await insertDead('api', 'gone', '25 hours')
    const running = announceProcess({ ...deps, kind: 'api' })
    await eventually('the process is announced', async () =>
      (await list()).some(({ version }) => version === '1.2.3'),
    )
    const others = (await list()).filter(({ version }) => version !== '1.2.3')
    assert.deepEqual(
      others.map(({ kind, host, is_alive }) => [kind, host === 'elsewhere', is_alive]).sort(),
      [
        ['api', false, true],
        ['api', true, false],
        ['worker', false, false],
      ],
    )
    await running.stop()
    await database.query('truncate postern.processes')
  })

  test('is shown as dead after a minute, even if another process of its kind on its host is older', async () => {
    const running = announceProcess({ ...deps, kind: 'intake' })
    await onlyOne(true)
    await database.query(
      `insert into postern.processes (id, kind, host, version, seen_at)
       select gen_random_uuid(), kind, host, 'sibling', postern.now() + interval '1 millisecond'
         from postern.processes`,
    )
    await database.query(
      `update postern.processes set started_at = started_at - interval '1 hour',
              seen_at = case version when 'sibling' then postern.now() - interval '2 minutes' else seen_at end`,
    )
    const seen = (await list())[0]?.seen_at ?? 0
    await eventually('the process is seen again', async () => ((await list())[0]?.seen_at ?? 0) > seen)
    assert.deepEqual(
      (await list()).map(({ version, is_alive }) => [version, is_alive]),
      [
        ['1.2.3', true],
        ['sibling', false],
      ],
    )
    await running.stop()
    await database.query('truncate postern.processes')
  })

  test('is announced when the database is available again', async () => {
    let isAway = true
    const flaky = new Proxy(db, {
      get(target, name: keyof UnscopedDb) {
        if (isAway) return () => Promise.reject(new Error('the database is unavailable'))
        return target[name].bind(target)
      },
    })
    const running = announceProcess({ ...deps, db: flaky, kind: 'all' })
    isAway = false
    await onlyOne(true)
    isAway = true
    await running.stop()
    assert.equal((await list()).length, 1, 'a row that cannot be deleted does not prevent the stop')
  })
})
