import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertStrictPaging, readAllPages } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makePolicy } = fixtures(database, admin)

interface Listed {
  id: number
  mode: string
}

/** Signal, window, threshold, minimum volume and intervention of the policies that a new installation has. */
const shipped = [
  ['bounce_rate', 1440, 5, 500, 'warn', null],
  ['bounce_rate', 1440, 10, 500, 'pace', 500],
  ['bounce_rate', 60, 20, 300, 'lock', null],
  ['complaint_rate', 1440, 0.1, 1000, 'warn', null],
  ['complaint_rate', 1440, 0.5, 1000, 'lock', null],
  ['volume_spike', 60, 10, 500, 'pace', 500],
]

describe('policies.list', () => {
  test('returns the shipped policies of a new installation, all in shadow and each with a public note', async () => {
    const { data } = (await admin.get('/policies')).body
    assert.deepEqual(
      data.map(({ signal, window_minutes, threshold, minimum_volume, intervention }: Shipped) => [
        ...[signal, window_minutes, threshold, minimum_volume],
        ...[intervention.kind, intervention.pace_per_hour],
      ]),
      shipped,
    )
    for (const { mode, intervention, applies_to, signal, tripped_at } of data) {
      assert.deepEqual([mode, intervention.duration_minutes, tripped_at], ['shadow', 1440, null])
      assert.match(intervention.public_note, /^[A-Z].*\.$/)
      assert.deepEqual(applies_to, {
        plan_ids: null,
        younger_than_days: signal === 'volume_spike' ? 14 : null,
        except_project_ids: [],
      })
    }
  })

  test('returns each policy as policies.show does, oldest first, and filters by mode', async () => {
    const [off, enforced] = [await makePolicy({ mode: 'off' }), await makePolicy({ mode: 'enforce' })]
    const all = await readAllPages<Listed>(admin, '/policies', { limit: '3' })
    assert.deepEqual(all.slice(-2), [off, enforced])
    assert.deepEqual((await admin.get(`/policies/${off.id}`)).body, off)
    for (const mode of ['off', 'shadow', 'enforce']) {
      assert.deepEqual(
        await readAllPages<Listed>(admin, '/policies', { mode, limit: '1' }),
        all.filter((policy) => policy.mode === mode),
      )
    }
  })

  test('rejects invalid cursors, limits and filters', async () => {
    await assertStrictPaging(admin, '/policies', (await makePolicy()).id)
    for (const query of ['mode=on', 'mode=', 'mode=Off', 'q=bounce'])
      assertProblem(await admin.get(`/policies?${query}`), 400, 'invalid_parameter')
  })
})

interface Shipped {
  signal: string
  window_minutes: number
  threshold: number
  minimum_volume: number
  intervention: { kind: string; pace_per_hour: number | null }
}
