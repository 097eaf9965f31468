import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { testDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, callPostern } from '../testing/harness/postern-process.ts'

/** `postern policies` as an operator runs it. */
const database = await testDatabase()
const env = {
  ...bareEnvironment,
  POSTERN_DATABASE_URL: database.url,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_AUTH_SECRETS: `1:${'secret-of-the-policies-test-'.repeat(2)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
}

async function policies(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await callPostern(env, 'policies', ...args)
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' }, args.join(' '))
  return stdout
}

const stored = () =>
  database.query<{ id: number; mode: string; version: number }>(
    'select id::int, mode, version::int, tripped_at from control.policies order by id',
  )
const audited = () =>
  database.query(
    `select chain::int, actor_kind, operation, resource_type, resource_id::int, reason, before ->> 'mode' as before,
            after ->> 'mode' as after, after ->> 'tripped_at' as tripped_at
       from control.audit order by seq`,
  )

describe('postern policies', () => {
  test('list shows the policies with their mode, and those whose breaker tripped', async () => {
    await database.query(`update control.policies set mode = 'enforce' where id = 3`)
    await database.query(`update control.policies set tripped_at = '2026-11-14T09:30:00Z' where id = 5`)
    const lines = (await policies('list')).split('\n')
    assert.equal(lines[0], '    1  shadow  Bounce rate of 5 % or more')
    assert.equal(lines[2], '    3  enforce Bounce rate of 20 % or more in an hour')
    assert.match(lines[4] ?? '', /0\.5 % or more \(tripped at 2026-11-14T09:30:00\.000Z\)$/)
    const { policies: listed } = JSON.parse(await policies('list', '--json'))
    assert.deepEqual(
      listed.map(({ id, mode }: { id: number; mode: string }) => [id, mode]),
      (await stored()).map(({ id, mode }) => [id, mode]),
    )
  })

  test('off turns every policy off and writes one audit row for each that was not off', async () => {
    await database.query(`update control.policies set mode = 'off' where id = 2`)
    const text = await policies('off', '--reason', 'Locks the wrong projects')
    assert.match(text, /^Turned off: policy 1, Bounce rate of 5 % or more \(mode was shadow\)\.$/m)
    assert.match(text, /^Turned off: policy 3, .* \(mode was enforce\)\.$/m)
    assert.match(text, /\nInterventions that policies have started stay in force\.\n$/)
    assert.deepEqual(
      await stored(),
      [1, 2, 3, 4, 5, 6].map((id) => ({ id, mode: 'off', version: id === 2 ? 1 : 2, tripped_at: null })),
    )
    assert.deepEqual(
      await audited(),
      [1, 3, 4, 5, 6].map((id) => ({
        chain: 0,
        actor_kind: 'shell',
        operation: 'policies.edit',
        resource_type: 'policy',
        resource_id: id,
        reason: 'Locks the wrong projects',
        before: id === 3 ? 'enforce' : 'shadow',
        after: 'off',
        tripped_at: null,
      })),
    )
  })

  test('off changes nothing if all policies are off; the reason is optional', async () => {
    const before = await audited()
    assert.equal(await policies('off'), 'All policies are already off.\n')
    assert.deepEqual(JSON.parse(await policies('off', '--json')), { turned_off: [] })
    assert.deepEqual(await audited(), before)
    await database.query(`update control.policies set mode = 'enforce' where id = 3`)
    assert.deepEqual(JSON.parse(await policies('off', '--json')).turned_off, [
      { id: 3, name: 'Bounce rate of 20 % or more in an hour', mode_before: 'enforce' },
    ])
    assert.equal((await audited()).length, before.length + 1)
  })

  test('rejects an invalid reason and unknown subcommands', async () => {
    for (const args of [['off', '--reason', ' '], ['on'], []]) {
      assert.equal((await callPostern(env, 'policies', ...args)).status, 2, args.join(' '))
    }
  })
})
