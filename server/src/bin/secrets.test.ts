import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import type { MasterKey } from '../core/control/secrets/master-keys.ts'
import { Vault } from '../core/control/secrets/vault.ts'
import { insertPlans } from '../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, callPostern, type Outcome } from '../testing/harness/postern-process.ts'

/** A rotation as docs/operations/secrets.md describes it, with real processes. */
const database = await testDatabase()
const db = openDatabase(database).as('admin')

const place = { table: 'control.endpoints', column: 'encrypted_secret', rowId: 7 }
const old: MasterKey = { id: '2026-a', key: randomBytes(32) }
const next: MasterKey = { id: '2026-b', key: randomBytes(32) }

const projects = await database.query<{ id: string }>(
  `with person as (insert into control.users (email, name) values ('owner@example.com', 'Owner') returning id),
        plan as (${insertPlans()} returning id)
   insert into control.projects (user_id, name, plan_id)
   select person.id, 'Project ' || n, plan.id from person, plan, generate_series(1, 4) n returning id`,
)
const [first = 0, ...others] = projects.map(({ id }) => Number(id))

const seal = (masterKey: MasterKey, projectId: number) =>
  db.transaction((tx) => new Vault([masterKey]).seal(tx, projectId, place, 'kept'))

function secrets(masterKeys: MasterKey[], ...args: string[]): Promise<Outcome> {
  const env = {
    ...bareEnvironment,
    POSTERN_DATABASE_URL: database.url,
    POSTERN_PUBLIC_URL: 'http://localhost:8080',
    POSTERN_AUTH_SECRETS: `1:${'secret-of-the-command-test-'.repeat(2)}`,
    POSTERN_MASTER_KEYS: masterKeys.map(({ id, key }) => `${id}:${key.toString('hex')}`).join(','),
  }
  return callPostern(env, 'secrets', ...args)
}

describe('postern secrets', () => {
  test('status and rewrap during a rotation', async () => {
    const sealed = await seal(old, first)
    for (const id of others) await seal(old, id)
    const before = await secrets([old, next], 'status')
    assert.equal(before.status, 0, before.stderr)
    assert.match(before.stdout, /^2026-a +4 {2}first: wraps new keys$/m)
    assert.match(before.stdout, /^2026-b +0 {2}listed, not in use$/m)

    const { master_keys } = JSON.parse((await secrets([old, next], 'status', '--json')).stdout)
    assert.deepEqual(master_keys[0], { id: '2026-a', keys: 4, state: 'first' })

    const rewrapped = await secrets([next, old], 'rewrap')
    assert.deepEqual(
      [rewrapped.status, rewrapped.stderr],
      [0, ''],
      'progress is for a terminal; this is a pipe',
    )
    assert.match(rewrapped.stdout, /^Rewrapped under the master key "2026-b": 4 project keys\.$/m)
    assert.match(rewrapped.stdout, /^No other master key is in use\.$/m)
    const again = await secrets([next, old], 'rewrap', '--json')
    assert.deepEqual(JSON.parse(again.stdout), {
      ...{ master_key: '2026-b', rewrapped: 0, unopened: 0, examples: [], still_in_use: [] },
    })

    const after = await secrets([next], 'status')
    assert.equal(after.status, 0)
    assert.match(after.stdout, /^2026-b +4 {2}first: wraps new keys$/m)
    assert.ok(!after.stdout.includes('2026-a'))
    assert.equal(await db.read((tx) => new Vault([next]).open(tx, first, place, sealed)), 'kept')
    const rows = await database.query(
      `select people.user_agent, audit.after from control.audit
         join control.audit_people people on people.audit_id = audit.id where operation = 'secrets.rewrap'`,
    )
    assert.deepEqual(rows, [{ user_agent: 'postern secrets rewrap', after: { keys: 4 } }])
  })

  test('a master key that was removed too early is named, and the command fails', async () => {
    await database.query('delete from control.project_keys')
    await seal(old, first)
    const status = await secrets([next], 'status')
    assert.equal(status.status, 1)
    assert.match(status.stdout, /^2026-a +1 {2}MISSING in POSTERN_MASTER_KEYS/m)
    const rewrapped = await secrets([next], 'rewrap')
    assert.equal(rewrapped.status, 1)
    assert.match(rewrapped.stdout, /left unchanged: 1 project key\.\n.*master key "2026-a"/)
    assert.match(rewrapped.stdout, /^Still in use: "2026-a" \(1 project key\)\.$/m)
    const wrong = await secrets([{ ...next, id: '2026-a' }], 'status')
    assert.equal(wrong.status, 1)
    assert.match(wrong.stdout, /^2026-a +1 {2}WRONG KEY/m)
  })

  test('rejects invalid arguments', async () => {
    for (const [args, message] of [
      [[], /postern secrets rewrap/],
      [['rewrap', '--all'], /--all/],
    ] as const) {
      const { status, stderr } = await secrets([old], ...args)
      assert.equal(status, 2)
      assert.match(stderr, message)
      assert.ok(!stderr.includes('    at '), stderr)
    }
  })
})
