import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { adminDeps } from '../../context/admin-deps.ts'
import { system } from '../../core/control/audit/record.ts'
import { insertProjects } from '../../testing/fixtures/project-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { bareEnvironment, type PosternProcess, startPostern } from '../../testing/harness/postern-process.ts'
import { Chance, seed } from '../../testing/harness/random.ts'
import { eventually, patienceMs } from '../../testing/harness/waiting.ts'
import { evaluate } from './evaluate.ts'

/** Workers in separate processes that are killed during a bulk action. `POSTERN_TEST_CASES` sets the number of projects. */
const cases = Number(process.env['POSTERN_TEST_CASES'] ?? 500)
const kills = 5
const chance = new Chance(seed)

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const env = {
  ...bareEnvironment,
  POSTERN_DATABASE_URL: database.url,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_AUTH_SECRETS: `1:${'test-secret-'.repeat(4)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
}
const startWorker = () => startPostern('worker', env, ['working'])
const reason = 'Spam wave'

const ids = await insertProjects(database, cases)
const [{ plan_id } = assert.fail()] = await database.query<{ plan_id: string }>(
  'select plan_id from control.projects where id = $1',
  [ids[0]],
)
/** Every tenth project is locked already. */
const locked = ids.filter((_, index) => index % 10 === 9)
for (const id of locked) await admin.patch(`/projects/${id}`, { is_locked: true, reason })
const lock = { operation: 'projects.edit', filter: { plan_id: Number(plan_id) }, body: { is_locked: true } }

const doneOf = async (id: string): Promise<number> => {
  const [row] = await database.query<{ done: number }>(
    'select changed + unchanged + refused as done from control.bulk_actions where id = $1',
    [id],
  )
  return row?.done ?? assert.fail()
}

test(`a bulk lock changes every project exactly once, although the worker is killed ${kills} times`, async (t) => {
  const preview = await evaluate(
    adminDeps(api.context),
    {
      actor: { ...system, id: admin.userId },
      requestId: 'preview',
      operation: 'projects.edit',
      body: lock.body,
    },
    ids,
    // A request takes at most 25 seconds, which is not enough for 10,000 projects on a busy machine.
    patienceMs,
  )
  assert.equal(preview.is_complete, true, `only ${preview.evaluated} projects were tried`)
  const { id } = (await admin.post('/bulk', { ...lock, reason })).body

  let worker: PosternProcess | undefined
  for (let killed = 0; killed < kills; killed++) {
    worker = await startWorker()
    const goal = (await doneOf(id)) + 1 + chance.below(cases / 10)
    await eventually('the worker has changed some projects', async () => (await doneOf(id)) >= goal, {
      everyMs: 5,
    })
    await sleep(chance.below(20))
    worker.kill()
    await worker.exited
    t.diagnostic(`killed after ${await doneOf(id)} of ${cases} projects`)
  }
  assert.ok((await doneOf(id)) < cases, 'the last kill came too late')
  worker = await startWorker()
  await eventually(
    'the bulk action is finished',
    async () => (await admin.get(`/bulk/${id}`)).body.status === 'finished',
  )
  await worker.stop()

  const { matched, changed, unchanged, refused } = (await admin.get(`/bulk/${id}`)).body
  assert.deepEqual(
    { matched, changed, unchanged, refused },
    { matched: cases, changed: cases - locked.length, unchanged: locked.length, refused: 0 },
  )
  assert.deepEqual(
    [preview.matched, preview.changed, preview.unchanged, preview.refused],
    [matched, changed, unchanged, refused],
  )
  const audited = await database.query<{ project_id: string; rows: number }>(
    'select project_id, count(*)::int as rows from control.audit where bulk_id = $1 group by 1 order by 1',
    [id],
  )
  assert.deepEqual(
    audited,
    ids.filter((one) => !locked.includes(one)).map((one) => ({ project_id: String(one), rows: 1 })),
  )
  const interventions = await database.query<{ project_id: string }>(
    `select project_id from control.interventions where kind = 'lock' and ended_at is null order by 1`,
  )
  assert.deepEqual(
    interventions.map(({ project_id }) => Number(project_id)),
    ids,
  )
})
