import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { Client, signedIn } from '../../testing/harness/client.ts'
import { openDatabase, type TestDatabase, testDatabase } from '../../testing/harness/database.ts'
import { dump } from '../../testing/harness/dump.ts'
import { eventually, patienceMs } from '../../testing/harness/waiting.ts'
import { PosternError } from '../errors.ts'
import { type Handlers, JobRunner, JobSender } from './jobs.ts'
import type { Payloads } from './queues.ts'

/** A sender and a runner on one database. `onCheck` handles `domains.check`. */
async function startJobs(
  database: TestDatabase,
  onCheck: (payload: Payloads['domains.check']) => Promise<void> = async () => {},
) {
  const errors: unknown[] = []
  const opened = openDatabase(database)
  const onError = (error: unknown) => errors.push(error)
  const options = { db: opened.statementsAsAdmin(), onError, intervalSeconds: 1 }
  const sender = new JobSender(options)
  const runner = new JobRunner(options)
  const nothing = async () => {}
  const handlers: Handlers = {
    'identities.reconcile': nothing,
    'identities.sweep': nothing,
    'domains.check': onCheck,
    'domains.sweep': nothing,
    'messages.cancel': nothing,
    'partitions.keep': nothing,
    'system-mail.send': nothing,
    'evidence.make': nothing,
    'policies.evaluate': nothing,
    'forwards.confirm': nothing,
    chores: nothing,
  }
  cleanUp(async () => {
    await sender.stop(1000)
    await runner.stop(1000)
  })
  return { db: opened.as('admin'), sender, runner, handlers, errors }
}

const jobsIn = (database: TestDatabase, queue = 'domains.check') =>
  database.query<{ state: string; domain_id: number; retry_count: number }>(
    `select state::text, (data->>'domain_id')::int as domain_id, retry_count from jobs.job
      where name = $1 order by created_on`,
    [queue],
  )

const firstIsCompleted = (database: TestDatabase) =>
  eventually('the job is completed', async () => (await jobsIn(database))[0]?.state === 'completed')

describe('a job', () => {
  test('sent in a transaction that rolls back is not created', async () => {
    const database = await testDatabase()
    const { db, sender } = await startJobs(database)
    await sender.start()
    const refused = db.transaction(async (tx) => {
      await sender.send(tx, 'domains.check', { project_id: 1, domain_id: 1 })
      throw new Error('roll back')
    })
    await assert.rejects(refused, /roll back/)
    await db.dryRun((tx) => sender.send(tx, 'domains.check', { project_id: 1, domain_id: 2 }))
    assert.deepEqual(await jobsIn(database), [])
  })

  test('runs only after its transaction has committed', async () => {
    const database = await testDatabase()
    const done: number[] = []
    const { db, sender, runner, handlers, errors } = await startJobs(database, async ({ domain_id }) => {
      done.push(domain_id)
    })
    await sender.start()
    await runner.run(handlers, {})
    await db.transaction(async (tx) => {
      // A slow machine could exceed the idle timeout.
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
      await sender.send(tx, 'domains.check', { project_id: 1, domain_id: 7 })
      await db.transaction((other) => sender.send(other, 'domains.check', { project_id: 1, domain_id: 8 }))
      await eventually('the job of the inner transaction runs', () => done.length > 0)
      assert.deepEqual(done, [8])
    })
    await eventually('the job runs', () => done.length > 1)
    assert.deepEqual(done, [8, 7])
    await eventually('both jobs are completed', async () =>
      (await jobsIn(database)).every(({ state }) => state === 'completed'),
    )
    assert.deepEqual(errors, [])
  })

  test('that fails is retried', async () => {
    const database = await testDatabase()
    let tries = 0
    const { db, sender, runner, handlers } = await startJobs(database, async () => {
      if (++tries === 1) throw new Error('not this time')
    })
    await sender.start()
    await runner.run(handlers, {})
    await db.transaction((tx) => sender.send(tx, 'domains.check', { project_id: 1, domain_id: 1 }))
    await firstIsCompleted(database)
    assert.deepEqual([tries, (await jobsIn(database))[0]?.retry_count], [2, 1])
  })

  test('from a crashed process runs again, and completed jobs are deleted after an hour', async () => {
    const database = await testDatabase()
    const done: number[] = []
    const { db, sender, runner, handlers, errors } = await startJobs(database, async ({ domain_id }) => {
      done.push(domain_id)
    })
    await sender.start()
    for (const domain_id of [1, 2]) {
      await db.transaction((tx) => sender.send(tx, 'domains.check', { project_id: 1, domain_id }))
    }
    await database.query(
      `update jobs.job set state = 'active', started_on = now() - interval '3 minutes'
        where (data->>'domain_id')::int = 1`,
    )
    await database.query(
      `update jobs.job set state = 'completed', started_on = now() - interval '2 hours',
              completed_on = now() - interval '61 minutes' where (data->>'domain_id')::int = 2`,
    )
    await runner.run(handlers, { chores: '* * * * *' })
    await eventually('the job runs', () => done.length > 0)
    assert.deepEqual(done, [1])
    await eventually('the other job is deleted', async () =>
      (await jobsIn(database)).every(({ domain_id }) => domain_id === 1),
    )
    assert.deepEqual(errors, [], 'the privileges are enough for the maintenance of pg-boss')
  })

  test('runs in only one of several workers', async () => {
    const database = await testDatabase()
    const done: number[] = []
    const record = async ({ domain_id }: { domain_id: number }) => void done.push(domain_id)
    const { db, sender, runner, handlers } = await startJobs(database, record)
    const other = await startJobs(database, record)
    await sender.start()
    await Promise.all([runner.run(handlers, {}), other.runner.run(other.handlers, {})])
    const ids = Array.from({ length: 30 }, (_, n) => n)
    await Promise.all(
      ids.map((domain_id) =>
        db.transaction((tx) => sender.send(tx, 'domains.check', { project_id: 1, domain_id })),
      ),
    )
    // A completed job does not run again.
    await eventually('all are completed', async () =>
      (await jobsIn(database)).every(({ state }) => state === 'completed'),
    )
    assert.deepEqual(
      done.sort((a, b) => a - b),
      ids,
    )
  })
})

describe('a runner that is stopped', () => {
  test('finishes running jobs and starts no new ones', async () => {
    const database = await testDatabase()
    const started: number[] = []
    const ended: number[] = []
    const release = Promise.withResolvers<void>()
    const { db, sender, runner, handlers } = await startJobs(database, async ({ domain_id }) => {
      started.push(domain_id)
      await release.promise
      ended.push(domain_id)
    })
    await sender.start()
    await runner.run(handlers, {})
    await db.transaction((tx) => sender.send(tx, 'domains.check', { project_id: 1, domain_id: 1 }))
    await eventually('the job has started', () => started.length === 1)
    const stopped = runner.stop(patienceMs)
    // A poll that is already running may still fetch a job.
    await eventually('no poll is running', async () => {
      const active = await database.query(
        `select from pg_stat_activity
          where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`,
      )
      return active.length === 0
    })
    await db.transaction((tx) => sender.send(tx, 'domains.check', { project_id: 1, domain_id: 2 }))
    // Longer than a runner's polling interval.
    await sleep(1500)
    release.resolve()
    await stopped
    assert.deepEqual([started, ended], [[1], [1]])
    assert.deepEqual(
      (await jobsIn(database)).map(({ state }) => state),
      ['completed', 'created'],
    )
  })

  test('leaves jobs that exceed the grace period for the next runner', async () => {
    const database = await testDatabase()
    let runs = 0
    const release = Promise.withResolvers<void>()
    const { db, sender, runner, handlers } = await startJobs(database, async () => {
      if (++runs === 1) await release.promise
    })
    await sender.start()
    await runner.run(handlers, {})
    await db.transaction((tx) => sender.send(tx, 'domains.check', { project_id: 1, domain_id: 1 }))
    await eventually('the job has started', () => runs === 1)
    await runner.stop(1000)
    assert.equal((await jobsIn(database))[0]?.state, 'retry')
    const next = await startJobs(database, async () => void runs++)
    await next.runner.run(next.handlers, {})
    await firstIsCompleted(database)
    assert.equal(runs, 2)
    release.resolve()
  })

  test('ends cleanly before or during its start', async () => {
    const database = await testDatabase()
    for (const pause of [0, 5, 50]) {
      const { runner, handlers } = await startJobs(database)
      const running = runner.run(handlers, { chores: '* * * * *' }).catch(() => {})
      await sleep(pause)
      await runner.stop(1000)
      await running
    }
    const { runner } = await startJobs(database)
    await runner.stop(1000)
  })
})

describe('while the job queue is not ready', () => {
  test('sending a job fails with unavailable', async () => {
    const database = await testDatabase()
    const { db, sender } = await startJobs(database)
    const send = () =>
      db.transaction((tx) => sender.send(tx, 'domains.check', { project_id: 1, domain_id: 1 }))
    await assert.rejects(send, (error) => error instanceof PosternError && error.code === 'unavailable')
    await sender.start()
    await send()
    assert.equal((await jobsIn(database)).length, 1)
  })

  test('operations that need a job return 503 and write nothing; all others succeed', async () => {
    const database = await testDatabase()
    const api = await startApi(database)
    const admin = await signedIn(api)
    const make = fixtures(database, admin)
    const project = await make.makeProject()
    const domain = await make.makeDomain(project.id, { mta_provider: 'service' })

    await database.query('alter schema jobs rename to not_yet')
    // Like `postern api`, which serves requests before its job queue is ready.
    const early = await startApi(database, {}, { waitsForJobs: false })
    const client = new Client(early.url, await early.tokenOf(admin.email))
    const path = `/projects/${project.id}/domains`
    const before = await dump(database)
    for (const answer of [
      await client.post(path, { name: 'early.example.com', mta_provider: 'ses' }),
      await client.patch(`${path}/${domain.id}`, { name: 'early.example.com' }),
      await client.post(`${path}/${domain.id}/verify`),
      await client.delete(`${path}/${domain.id}`, { reason: 'Early' }),
    ]) {
      assertProblem(answer, 503, 'unavailable')
    }
    assert.deepEqual(await dump(database), before)
    assert.equal((await client.post(`${path}/${domain.id}/rotate`, { reason: 'No job needed' })).status, 200)
    assert.equal((await client.patch(`/projects/${project.id}`, { name: 'Renamed' })).status, 200)

    await database.query('alter schema not_yet rename to jobs')
    await eventually('the jobs are ready', async () => {
      const { status } = await client.post(path, { name: 'late.example.com', mta_provider: 'ses' })
      return status === 201
    })
  })
})
