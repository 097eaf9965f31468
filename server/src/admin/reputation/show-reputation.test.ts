import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)

const count = (projectId: number, daysAgo: number, counts: Record<string, number>) =>
  database.query(
    `insert into mail.daily_counters (project_id, day, sent, bounced, complained, failed)
     values ($1, (postern.now() at time zone 'UTC')::date - $2::int, $3, $4, $5, $6)`,
    [projectId, daysAgo, ...['sent', 'bounced', 'complained', 'failed'].map((kind) => counts[kind] ?? 0)],
  )
const show = async (projectId: number) => {
  const answer = await admin.get(`/projects/${projectId}/reputation`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

describe('reputation.show', () => {
  test('returns the points that each kind of result takes off, and the offset', async () => {
    const { id } = await makeProject()
    const other = await makeProject()
    await count(id, 0, { sent: 6000, bounced: 400, complained: 20 })
    await count(id, 6, { sent: 4000, failed: 500 })
    // Outside the seven days, and of another project.
    await count(id, 7, { sent: 1000, bounced: 1000 })
    await count(other.id, 0, { sent: 1000, bounced: 1000 })
    const reason = 'Known to be good'
    assert.equal((await admin.patch(`/projects/${id}`, { reputation_score: 90, reason })).status, 200)
    const { parts, ...rest } = await show(id)
    assert.deepEqual(rest, {
      project_id: id,
      volume: 10_000,
      min_volume: 50,
      computed_score: 50,
      score_offset: -10,
      reputation_score: 40,
    })
    assert.deepEqual(
      parts.map(({ points, ...part }: { points: number }) => ({ ...part, points: Math.round(points) })),
      [
        {
          ...{ kind: 'bounced', count: 400, volume: 10_000, rate: 0.04 },
          ...{ tolerated_rate: 0.02, worst_rate: 0.1, max_points: 100, points: 25 },
        },
        {
          ...{ kind: 'complained', count: 20, volume: 10_000, rate: 0.002 },
          ...{ tolerated_rate: 0.001, worst_rate: 0.005, max_points: 100, points: 25 },
        },
        {
          ...{ kind: 'failed', count: 500, volume: 10_000, rate: 0.05 },
          ...{ tolerated_rate: 0.1, worst_rate: 0.5, max_points: 50, points: 0 },
        },
      ],
    )
  })

  test('deducts nothing while there is too little mail', async () => {
    const { id } = await makeProject()
    await count(id, 0, { sent: 49, bounced: 49 })
    const { volume, computed_score, parts } = await show(id)
    assert.deepEqual([volume, computed_score], [49, 100])
    assert.ok(parts.every(({ points }: { points: number }) => points === 0))
  })

  test('returns 404 for a missing project', async () => {
    assertProblem(await admin.get('/projects/999999999/reputation'), 404, 'not_found')
  })
})
