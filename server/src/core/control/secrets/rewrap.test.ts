import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { insertPlans } from '../../../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { shell } from '../audit/record.ts'
import type { MasterKey, MasterKeys } from './master-keys.ts'
import { listMasterKeys, type RewrapRun, rewrapProjectKeys } from './rewrap.ts'
import { Vault } from './vault.ts'

const database = await testDatabase()
const db = openDatabase(database).as('admin')

const masterKey = (id: string): MasterKey => ({ id, key: randomBytes(32) })
const old = masterKey('old')
const next = masterKey('next')
const rotating: MasterKeys = [next, old]

const locationOf = (rowId: number) => ({ table: 'control.endpoints', column: 'encrypted_secret', rowId })

interface StoredSecret {
  projectId: number
  bytes: Buffer
}

/**
 * New projects with one secret each. The secret is encrypted with a key that is wrapped by the first of
 * `masterKeys`.
 */
async function makeSecrets(count: number, masterKeys: MasterKeys = [old]): Promise<StoredSecret[]> {
  const projects = await database.query<{ id: string }>(
    `with person as (insert into control.users (email, name)
                     values (gen_random_uuid() || '@example.com', 'Owner') returning id),
          plan as (${insertPlans()} returning id)
     insert into control.projects (user_id, name, plan_id)
     select person.id, 'Project ' || n, plan.id from person, plan, generate_series(1, $1) n returning id`,
    [count],
  )
  const vault = new Vault(masterKeys)
  return db.transaction(async (tx) => {
    const secrets: StoredSecret[] = []
    for (const projectId of projects.map(({ id }) => Number(id))) {
      secrets.push({
        projectId,
        bytes: await vault.seal(tx, projectId, locationOf(7), `secret of ${projectId}`),
      })
    }
    return secrets
  })
}

const requireAllOpen = (secrets: StoredSecret[], masterKeys: MasterKeys): Promise<void> =>
  db.read(async (tx) => {
    const vault = new Vault(masterKeys)
    for (const { projectId, bytes } of secrets) {
      assert.equal(await vault.open(tx, projectId, locationOf(7), bytes), `secret of ${projectId}`)
    }
  })

const rewrap = (masterKeys: MasterKeys = rotating, run: Partial<RewrapRun> = {}, on: Db = db) =>
  rewrapProjectKeys(on, masterKeys, { actor: shell('test'), requestId: 'request', ...run })

const audited = () =>
  database.query<{
    chain: string
    resource_type: string
    resource_id: string
    actor_kind: string
    after: unknown
  }>(
    `select chain, actor_kind, resource_type, resource_id, after from control.audit
      where operation = 'secrets.rewrap' order by seq desc`,
  )

/** The number of keys in each audit row, oldest first. */
const auditedKeys = async (): Promise<number[]> =>
  (await audited()).map(({ after }) => (after as { keys: number }).keys).reverse()

const status = (masterKeys: MasterKeys) => db.read((tx) => listMasterKeys(tx, masterKeys))

const none = { count: 0, examples: [] }

beforeEach(() => database.query('delete from control.project_keys'))

test('rotation: add a new master key first, rewrap, remove the old one, and every secret still decrypts', async () => {
  const secrets = await makeSecrets(1100)
  assert.deepEqual(await status(rotating), [
    { id: 'next', keys: 0, state: 'first' },
    { id: 'old', keys: 1100, state: 'listed' },
  ])
  await requireAllOpen(secrets, rotating)
  const recent = await makeSecrets(1, rotating)

  const progress: number[] = []
  const outcome = await rewrap(rotating, { onBatch: (rewrapped) => progress.push(rewrapped) })
  assert.deepEqual(outcome, { rewrapped: 1100, unopened: none })
  assert.deepEqual(progress, [500, 1000, 1100])
  assert.deepEqual((await audited())[0], {
    chain: '0',
    actor_kind: 'shell',
    resource_type: 'master_key',
    resource_id: 'next',
    after: { keys: 100 },
  })
  assert.deepEqual(await auditedKeys(), [500, 500, 100])

  await requireAllOpen([...secrets, ...recent], [next])
  assert.deepEqual(await status([next]), [{ id: 'next', keys: 1101, state: 'first' }])
  await assert.rejects(requireAllOpen(secrets, [old]), /cannot be decrypted/, 'the old key decrypts nothing')
})

test('a run without work changes nothing and writes no audit row', async () => {
  const secrets = await makeSecrets(3, rotating)
  const before = await audited()
  assert.deepEqual(await rewrap(), { rewrapped: 0, unopened: none })
  assert.deepEqual(await audited(), before)
  await requireAllOpen(secrets, [next])
})

test('an interrupted run leaves everything readable, and the next run completes it', async () => {
  for (const cutAt of [1, 2, 3, 4]) {
    await database.query('delete from control.project_keys')
    const secrets = await makeSecrets(10)
    const before = await auditedKeys()
    let transactions = 0
    const cut: Db = {
      ...db,
      transaction: <T>(work: (tx: Tx) => Promise<T>) =>
        db.transaction(async (tx) => {
          const result = await work(tx)
          if (++transactions === cutAt) throw new Error('power failure')
          return result
        }),
    }
    await assert.rejects(rewrap(rotating, { batchSize: 3 }, cut), /power failure/)
    const done = (cutAt - 1) * 3
    assert.deepEqual(
      await auditedKeys(),
      [...before, ...Array(cutAt - 1).fill(3)],
      'finished batches are audited',
    )
    const [{ keys } = { keys: 0 }] = await status(rotating)
    assert.equal(keys, done)
    await requireAllOpen(secrets, rotating)

    assert.deepEqual(await rewrap(rotating, { batchSize: 3 }), { rewrapped: 10 - done, unopened: none })
    const audited = (await auditedKeys()).slice(before.length)
    assert.equal(
      audited.reduce((sum, n) => sum + n, 0),
      10,
    )
    await requireAllOpen(secrets, [next])
  }
})

test('a run with a full last batch is audited per batch', async () => {
  await makeSecrets(6)
  const before = await auditedKeys()
  const progress: number[] = []
  await rewrap(rotating, { batchSize: 3, onBatch: (rewrapped) => progress.push(rewrapped) })
  assert.deepEqual(progress, [3, 6])
  assert.deepEqual((await auditedKeys()).slice(before.length), [3, 3])
})

test('two concurrent runs rewrap each key once', async () => {
  const secrets = await makeSecrets(200)
  const outcomes = await Promise.all([
    rewrap(rotating, { batchSize: 7 }),
    rewrap(rotating, { batchSize: 11 }),
  ])
  assert.equal(outcomes[0].rewrapped + outcomes[1].rewrapped, 200)
  const versions = await database.query('select distinct version from control.project_keys')
  assert.deepEqual(versions, [{ version: '2' }])
  await requireAllOpen(secrets, [next])
})

test('secrets can be encrypted and decrypted while keys are rewrapped', async () => {
  const secrets = await makeSecrets(100)
  const vault = new Vault(rotating)
  const running = rewrap(rotating, { batchSize: 5 })
  const more = await Promise.all(
    secrets.slice(40, 60).map(async ({ projectId }) => {
      const secret = `secret of ${projectId}`
      const bytes = await db.transaction((tx) => vault.seal(tx, projectId, locationOf(7), secret))
      assert.equal(await db.read((tx) => vault.open(tx, projectId, locationOf(7), bytes)), secret)
      return { projectId, bytes }
    }),
  )
  assert.equal((await running).rewrapped, 100)
  await requireAllOpen([...secrets, ...more], [next])
})

test('keys that cannot be unwrapped are reported and left unchanged, and the others are rewrapped', async () => {
  const lost = masterKey('lost')
  const secrets = await makeSecrets(20)
  const unreadable = await makeSecrets(12, [lost])
  const { projectId: damaged } = secrets.shift() ?? assert.fail()
  await database.query(
    `update control.project_keys set wrapped_key = set_byte(wrapped_key, 40, get_byte(wrapped_key, 40) # 1)
      where project_id = $1`,
    [damaged],
  )
  const { rewrapped, unopened } = await rewrap(rotating, { batchSize: 5 })
  assert.equal(rewrapped, 19)
  assert.equal(unopened.count, 13)
  assert.equal(unopened.examples.length, 10, 'a sufficient sample')
  assert.match(unopened.examples[0] ?? '', new RegExp(`wrapped_key/${damaged}/old was altered`))
  assert.match(unopened.examples[1] ?? '', /master key "lost", which is not in POSTERN_MASTER_KEYS/)
  await requireAllOpen(secrets, [next])
  assert.deepEqual(await status(rotating), [
    { id: 'next', keys: 19, state: 'first' },
    { id: 'old', keys: 1, state: 'wrong' },
    { id: 'lost', keys: 12, state: 'missing' },
  ])

  assert.equal((await rewrap([next, lost])).rewrapped, 12, 'the restored key works again')
  await requireAllOpen(unreadable, [next])
})

test('a master key replaced under the same id is reported as wrong', async () => {
  await makeSecrets(1)
  assert.deepEqual(await status([masterKey('old')]), [{ id: 'old', keys: 1, state: 'wrong' }])
})
