import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import { senders } from '../../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { type Claimed, ClaimQueue } from './claims.ts'

/** A paced project, claimed by two workers in virtual time. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender } = senders(api, database, admin)

/** A worker's queue, with a connection whose clock the test sets. */
class VirtualWorker {
  readonly #db: UnscopedDb = openDatabase(database, { poolSize: 1 }).as('mail')
  #queue = new ClaimQueue(this.#db)

  async at(seconds: number): Promise<void> {
    await this.#db.transaction((tx) =>
      sql`select set_config('postern.clock_offset', ${`${seconds} seconds`}, false)`.execute(tx),
    )
  }

  async claim(free = 20): Promise<Claimed[]> {
    await this.#queue.sweep()
    await this.#queue.refreshLanes()
    const claims = await this.#queue.claim({ free, freeLarge: 2, for: () => free })
    return claims.map(({ claimed }) => claimed)
  }

  /** Forgets everything that is not in the database. */
  crash(): void {
    this.#queue = new ClaimQueue(this.#db)
  }
}

const pace = async (path: string, pace_per_hour: number) => {
  const { status, text } = await admin.post(`${path}/interventions`, {
    ...{ kind: 'pace', pace_per_hour, reason: 'Many bounces' },
  })
  assert.equal(status, 201, text)
}

/** Ready messages in several lanes. */
const fill = (projectId: number, count: number) =>
  database.query(
    `with made as (
       select postern.uuid7(postern.now()) as id, n from generate_series(1, $2::int) as n
     ), messages as (
       insert into mail.messages (id, project_id, identity_id, from_address, tags, recipient_count, size_bytes)
       select id, $1, 1, 'a@example.com', '{}', 1, 1 from made
     ), bodies as (
       insert into mail.bodies (message_id, project_id, format, content) select id, $1, 'json', '{}' from made
     )
     insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, is_large, recipient)
     select id, 0, $1, 1, case when n % 3 = 0 then 'ses' else 'service' end, n % 7 = 0, 'b@example.net' from made`,
    [projectId, count],
  )

const handOver = (rows: { message_id: string }[]) =>
  database.query('delete from mail.dispatch where message_id = any($1::uuid[])', [
    rows.map(({ message_id }) => message_id),
  ])

const mostWithin = (times: readonly number[], seconds: number): number => {
  let first = 0
  return Math.max(
    ...times.map((at, n) => {
      while ((times[first] ?? at) <= at - seconds) first++
      return n - first + 1
    }),
  )
}

/** Runs both workers for 75 minutes; returns the database time of each hand-over in seconds. */
async function run(path: string, projectId: number, crashes: boolean): Promise<number[]> {
  const chance = new Chance(seed)
  await pace(path, 600)
  await fill(projectId, 900)
  const workers = [new VirtualWorker(), new VirtualWorker()]
  const times: number[] = []
  for (let at = 0; at < 75 * 60; at += 1 + chance.below(6)) {
    for (const worker of workers) await worker.at(at)
    const claims = await Promise.all(workers.map((worker) => worker.claim()))
    for (const [n, claimed] of claims.entries()) {
      if (crashes && chance.happens(0.05)) workers[n]?.crash()
      else {
        await handOver(claimed)
        times.push(...claimed.map(({ claimed_at }) => claimed_at.getTime() / 1000))
      }
    }
  }
  await database.query('delete from mail.dispatch')
  return times.toSorted((one, other) => one - other)
}

describe(`a pace of 600 recipients per hour (seed ${seed})`, () => {
  test('is kept in every hour and minute by two workers, and used', async () => {
    const { path, id } = await makeSender()
    const times = await run(path, id, false)
    assert.ok(mostWithin(times, 3600) <= 610, `${mostWithin(times, 3600)} in an hour`)
    assert.ok(mostWithin(times, 60) <= 20, `${mostWithin(times, 60)} in a minute`)
    const inFirstHour = times.filter((at) => at < (times[0] ?? 0) + 3600).length
    assert.ok(inFirstHour >= 590, `${inFirstHour} in the first hour`)
  })

  test('is not exceeded if workers crash after a claim', async () => {
    const { path, id } = await makeSender()
    const times = await run(path, id, true)
    assert.ok(mostWithin(times, 3600) <= 610, `${mostWithin(times, 3600)} in an hour`)
    assert.ok(mostWithin(times, 60) <= 20, `${mostWithin(times, 60)} in a minute`)
    assert.ok(times.length > 0)
  })
})

describe('a paced project', () => {
  test('claims nothing more until its time has come, and does not affect others', async () => {
    const [slow, other] = [await makeSender(), await makeSender()]
    await pace(slow.path, 1)
    for (let n = 0; n < 3; n++) {
      await slow.send()
      await other.send()
    }
    const worker = new VirtualWorker()
    assert.equal((await worker.claim()).length, 4)
    assert.equal((await worker.claim()).length, 0)
    await worker.at(3601)
    // The leases of the four expired too; the other project's three are claimed again.
    const [{ count } = { count: 0 }] = await database.query<{ count: number }>(
      `select count(*)::int as count from mail.dispatch where project_id = $1 and attempt = 0`,
      [slow.id],
    )
    assert.equal(count, 2)
    await worker.claim()
    const claimed = await database.query(
      `select from mail.dispatch where project_id = $1 and state = 'leased'`,
      [slow.id],
    )
    assert.equal(claimed.length, 1)
    await database.query('delete from mail.dispatch')
  })

  test('is claimed freely as soon as the pace ends', async () => {
    const { path, id } = await makeSender()
    await pace(path, 1)
    await fill(id, 30)
    const worker = new VirtualWorker()
    assert.equal((await worker.claim(100)).length, 1)
    const [intervention] = (await admin.get(`${path}/interventions`)).body.data
    await admin.post(`${path}/interventions/${intervention.id}/end`, { reason: 'Over' })
    assert.ok((await worker.claim(100)).length > 1)
    await database.query('delete from mail.dispatch')
  })
})

describe('the lanes of a paced project', () => {
  const leasedOf = async (projectId: number) =>
    (
      await database.query<{ lane: string }>(
        `select distinct provider || case when is_large then ' large' else '' end as lane from mail.dispatch
          where project_id = $1 and state = 'leased' order by 1`,
        [projectId],
      )
    ).map(({ lane }) => lane)

  test('are served by the age of their mail, so that none takes the whole pace', async () => {
    const { path, id } = await makeSender()
    await pace(path, 60)
    await fill(id, 21)
    // The large mail is older than all other mail.
    await database.query(
      `update mail.dispatch set due_at = due_at - interval '1 hour' where project_id = $1 and is_large`,
      [id],
    )
    const worker = new VirtualWorker()
    await worker.claim()
    assert.ok(
      (await leasedOf(id)).some((lane) => lane.endsWith('large')),
      String(await leasedOf(id)),
    )
    await database.query('delete from mail.dispatch')
  })

  test('do not include test mail, which is not handed over', async () => {
    const { path, id } = await makeSender()
    await pace(path, 1)
    await fill(id, 20)
    await database.query(
      `update mail.dispatch set provider = 'none' where project_id = $1 and provider = 'ses'`,
      [id],
    )
    const worker = new VirtualWorker()
    const claimed = await worker.claim(100)
    assert.equal(claimed.filter(({ provider }) => provider !== 'none').length, 1)
    assert.ok(claimed.filter(({ provider }) => provider === 'none').length > 1)
    await database.query('delete from mail.dispatch')
  })

  test('are served at the new pace as soon as it is raised', async () => {
    const { path, id } = await makeSender()
    await pace(path, 1)
    await fill(id, 30)
    const worker = new VirtualWorker()
    assert.equal((await worker.claim(100)).length, 1)
    const [{ id: intervention }] = (await admin.get(`${path}/interventions`)).body.data
    await admin.patch(`${path}/interventions/${intervention}`, {
      ...{ pace_per_hour: 600, public_note: null, expires_at: null, reason: 'The list was cleaned up' },
    })
    assert.ok((await worker.claim(100)).length > 1)
    await database.query('delete from mail.dispatch')
  })
})
