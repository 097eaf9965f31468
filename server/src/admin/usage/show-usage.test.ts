import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender, makePlan } = senders(api, database, admin)

/** A day before today, in UTC. */
const daysAgo = (days: number): string =>
  new Date(Date.now() - days * 24 * 3600_000).toISOString().slice(0, 10)

const nothing = {
  accepted: 0,
  sent: 0,
  delivered: 0,
  deferred: 0,
  bounced: 0,
  failed: 0,
  complained: 0,
  suppressed: 0,
}

const { accepted: _, ...outcomes } = nothing

describe('usage.show', () => {
  test("returns the messages accepted today and this month, with the current plan's limits", async () => {
    const { path, send } = await makeSender()
    const idle = (await admin.get(`${path}/usage`)).body
    const [today, month] = [daysAgo(0), `${daysAgo(0).slice(0, 7)}-01`]
    assert.deepEqual(idle.day, { starts_on: today, accepted: 0, limit: 10_000 })
    assert.deepEqual(idle.month, { starts_on: month, accepted: 0, limit: 100_000 })
    await send({ to: ['a@example.net', 'b@example.net'] })
    await send()
    const plan = await makePlan({ max_mails_per_day: 20, max_mails_per_month: 30 })
    await admin.patch(path, { admin_plan_id: plan.id, reason: 'Asked for' })
    const { status, body, headers } = await admin.get(`${path}/usage`)
    assert.equal(status, 200)
    assert.equal(headers.get('etag'), null)
    assert.deepEqual(Object.keys(body), ['day', 'month', 'limits', 'days', 'hours'])
    assert.deepEqual(body.day, { starts_on: today, accepted: 3, limit: 20 })
    assert.deepEqual(body.month, { starts_on: month, accepted: 3, limit: 30 })
    assert.deepEqual(body.days[0], { day: today, ...nothing, accepted: 3 })
  })

  test('returns the last thirty days, today first, including days without mail', async () => {
    const [{ id, path }, other] = [await makeSender(), await makeSender()]
    for (const [projectId, days, bounced] of [
      [id, 29, 7],
      [id, 30, 9],
      [other.id, 3, 11],
    ] as const) {
      await database.query(
        `insert into mail.daily_counters (project_id, day, sent, delivered, bounced)
         values ($1, $2::date, 5000000001, 3, $3)`,
        [projectId, daysAgo(days), bounced],
      )
    }
    const { days } = (await admin.get(`${path}/usage`)).body
    assert.deepEqual(
      days.map(({ day }: { day: string }) => day),
      Array.from({ length: 30 }, (_, n) => daysAgo(n)),
    )
    assert.deepEqual(days.at(-1), {
      day: daysAgo(29),
      ...nothing,
      sent: 5_000_000_001,
      delivered: 3,
      bounced: 7,
    })
    for (const { day, ...counts } of days.slice(0, -1)) assert.deepEqual(counts, nothing, day)
  })

  test('returns the last 24 hours, the current one first', async () => {
    const { id, path } = await makeSender()
    const [current] = (await admin.get(`${path}/usage`)).body.hours
    await database.query(
      `insert into mail.sending_counters (project_id, bucket_at, sent, bounced, excluded_bounced)
       select $1, $2::timestamptz - ago * interval '1 hour', 10, 2, 1 from unnest(array[0, 20]) as ago`,
      [id, current.starts_at],
    )
    const { hours } = (await admin.get(`${path}/usage`)).body
    assert.equal(hours.length, 24)
    const starts = hours.map(({ starts_at }: { starts_at: string }) => Date.parse(starts_at))
    for (const [n, start] of starts.entries()) assert.equal(starts[0] - start, n * 3600_000)
    const found = hours.filter(({ sent }: { sent: number }) => sent > 0)
    assert.deepEqual(
      found.map(({ starts_at: _, ...counts }: { starts_at: string }) => counts),
      Array(2).fill({ ...outcomes, sent: 10, bounced: 3 }),
    )
    assert.equal(Date.parse(found[0].starts_at), Date.parse(current.starts_at))
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await admin.get('/projects/999999999/usage'), 404, 'not_found')
  })
})
