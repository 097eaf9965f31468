import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { inspect } from 'node:util'
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { insertPlans } from '../../../testing/fixtures/plan-rows.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { eventually } from '../../../testing/harness/waiting.ts'
import type { MasterKey } from './master-keys.ts'
import { type SecretLocation, Vault } from './vault.ts'

const database = await testDatabase()
const opened = openDatabase(database, { poolSize: 20 })
const db = opened.as('admin')

const masterKey = (id: string): MasterKey => ({ id, key: randomBytes(32) })
const one = masterKey('one')
const two = masterKey('two')
const vault = new Vault([one, two])
/** The same keys with swapped names. */
const misnamed = new Vault([
  { ...one, id: 'two' },
  { ...two, id: 'one' },
])

const anyPlace = { table: 'control.endpoints', column: 'encrypted_secret', rowId: 7 }

async function makeProjects(count: number): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `with person as (insert into control.users (email, name)
                     values (gen_random_uuid() || '@example.com', 'Owner') returning id),
          plan as (${insertPlans()} returning id)
     insert into control.projects (user_id, name, plan_id)
     select person.id, 'Project ' || n, plan.id from person, plan, generate_series(1, $1) n returning id`,
    [count],
  )
  return rows.map(({ id }) => Number(id))
}

interface Sealed {
  projectId: number
  location: SecretLocation
  secret: string
  bytes: Buffer
}

/** Secrets of every relevant length, in 3 projects × 3 columns × 4 rows with the same row ids everywhere. */
async function sealMany(): Promise<Sealed[]> {
  const projectIds = await makeProjects(3)
  const columns = [
    { table: 'control.endpoints', column: 'encrypted_secret' },
    { table: 'control.endpoints', column: 'url' },
    { table: 'control.dkim_keys', column: 'encrypted_private_key' },
  ]
  const wanted = projectIds.flatMap((projectId) =>
    columns.flatMap((column, c) =>
      [1, 2, 11, 111].map((rowId, r) => ({
        projectId,
        location: { ...column, rowId },
        // The same text in the same row everywhere: a secret must not decrypt elsewhere even if the contents are
        // equal.
        secret: ['', 'é', 'x'.repeat(50), randomBytes(400 * c).toString('hex')][r] ?? '',
      })),
    ),
  )
  return db.transaction(async (tx) => {
    const all: Sealed[] = []
    for (const each of wanted) {
      all.push({ ...each, bytes: await vault.seal(tx, each.projectId, each.location, each.secret) })
    }
    return all
  })
}

const sealed = await sealMany()

/** The reason why it does not decrypt, or undefined if it does. */
async function refusal(tx: ReadTx, projectId: number, location: SecretLocation, bytes: Buffer, by = vault) {
  try {
    await by.open(tx, projectId, location, bytes)
    return undefined
  } catch (error) {
    assert.ok(error instanceof PosternError && error.cause instanceof Error, inspect(error))
    assert.equal(error.code, 'internal_error')
    return error.cause.message
  }
}

class Tally {
  readonly #counts = new Map<string, { tried: number; refused: number }>()

  count(kind: string, why: string | undefined): void {
    const { tried, refused } = this.#counts.get(kind) ?? { tried: 0, refused: 0 }
    this.#counts.set(kind, { tried: tried + 1, refused: refused + (why === undefined ? 0 : 1) })
  }

  report(t: TestContext, expected: Record<string, number>): void {
    for (const [kind, { tried, refused }] of this.#counts)
      t.diagnostic(`${kind}: ${refused} of ${tried} refused`)
    for (const [kind, { tried, refused }] of this.#counts) assert.equal(refused, tried, kind)
    const tried = [...this.#counts].map(([kind, count]) => [kind, count.tried])
    assert.deepEqual(Object.fromEntries(tried), expected)
  }
}

async function requireAllOpen(tx: ReadTx, some = sealed): Promise<void> {
  for (const { projectId, location, secret, bytes } of some) {
    assert.equal(await vault.open(tx, projectId, location, bytes), secret)
  }
}

test('every secret decrypts at its own location', () => db.read((tx) => requireAllOpen(tx)))

test('the same text encrypted twice yields different bytes, which reveal only its length', async () => {
  const [projectId = 0] = await makeProjects(1)
  const [first, second] = await db.transaction(async (tx) => [
    await vault.seal(tx, projectId, anyPlace, 'whsec_canary'),
    await vault.seal(tx, projectId, anyPlace, 'whsec_canary'),
  ])
  assert.ok(first && second && !first.equals(second))
  assert.equal(first.length, 29 + 'whsec_canary'.length)
  assert.ok(!first.includes('canary'))
})

test('a ciphertext does not decrypt in another row, column or project', async (t) => {
  const tally = new Tally()
  await db.read(async (tx) => {
    for (const from of sealed) {
      for (const to of sealed) {
        if (from === to) continue
        const differs = [
          from.location.rowId !== to.location.rowId && 'row',
          (from.location.table !== to.location.table || from.location.column !== to.location.column) &&
            'column',
          from.projectId !== to.projectId && 'project',
        ]
        const kind = `moved to another ${differs.filter(Boolean).join(' and ')}`
        tally.count(kind, await refusal(tx, to.projectId, to.location, from.bytes))
      }
    }
  })
  tally.report(t, {
    'moved to another row': 108,
    'moved to another column': 72,
    'moved to another project': 72,
    'moved to another row and column': 216,
    'moved to another row and project': 216,
    'moved to another column and project': 144,
    'moved to another row and column and project': 432,
  })
})

test('a ciphertext with a flipped bit, truncated or extended, does not decrypt', async (t) => {
  const tally = new Tally()
  const samples = sealed.filter(({ bytes }) => bytes.length < 100).slice(0, 6)
  await db.read(async (tx) => {
    for (const { projectId, location, bytes } of samples) {
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = flip(bytes, bit >> 3, 1 << (bit & 7))
        tally.count('bit flipped', await refusal(tx, projectId, location, flipped))
      }
      for (let length = 0; length < bytes.length; length++) {
        tally.count('cut short', await refusal(tx, projectId, location, bytes.subarray(0, length)))
      }
      for (const more of [Buffer.of(0), Buffer.of(1), bytes]) {
        tally.count('lengthened', await refusal(tx, projectId, location, Buffer.concat([bytes, more])))
      }
    }
  })
  const size = Buffer.concat(samples.map(({ bytes }) => bytes)).length
  tally.report(t, { 'bit flipped': size * 8, 'cut short': size, lengthened: samples.length * 3 })
})

function flip(bytes: Buffer, at: number, mask: number): Buffer {
  const flipped = Buffer.from(bytes)
  flipped[at] = (flipped[at] ?? 0) ^ mask
  return flipped
}

interface KeyRow {
  master_key_id: string
  wrapped_key: Buffer
}

const keyOf = async (projectId: number): Promise<KeyRow> => {
  const [row] = await database.query<KeyRow & Record<string, unknown>>(
    'select master_key_id, wrapped_key from control.project_keys where project_id = $1',
    [projectId],
  )
  assert.ok(row)
  return row
}

const writeKey = (projectId: number, { master_key_id, wrapped_key }: KeyRow) =>
  database.query(
    'update control.project_keys set master_key_id = $2, wrapped_key = $3 where project_id = $1',
    [projectId, master_key_id, wrapped_key],
  )

test('a wrapped key is rejected for another project, with another master key and in altered form', async (t) => {
  const projectIds = [...new Set(sealed.map(({ projectId }) => projectId))]
  const tally = new Tally()

  /** Replaces the project's key with `row` and tries to decrypt and encrypt with it. */
  const tryKey = async (kind: string, projectId: number, row: KeyRow, some: Sealed[], by = vault) => {
    const original = await keyOf(projectId)
    await writeKey(projectId, row)
    await db.read(async (tx) => {
      for (const { location, bytes } of some) {
        tally.count(kind, await refusal(tx, projectId, location, bytes, by))
      }
    })
    await assert.rejects(
      db.transaction((tx) => by.seal(tx, projectId, anyPlace, 'x')),
      /cannot be decrypted/,
      'an untrusted key does not encrypt',
    )
    await writeKey(projectId, original)
  }

  for (const projectId of projectIds) {
    const row = await keyOf(projectId)
    const own = sealed.filter((each) => each.projectId === projectId)
    for (const other of projectIds.filter((id) => id !== projectId)) {
      const theirs = sealed.filter((each) => each.projectId === other)
      await tryKey("another project's wrapped key", projectId, await keyOf(other), own)
      await tryKey("another project's wrapped key and secrets", projectId, await keyOf(other), theirs)
    }
    const claimed = { ...row, master_key_id: 'two' }
    await tryKey('another master key claimed', projectId, claimed, own)
    await tryKey('another key under the same name', projectId, row, own, misnamed)
    await tryKey('another master key claimed, names swapped', projectId, claimed, own, misnamed)
    for (let at = 0; at < row.wrapped_key.length; at++) {
      const [flipped, cut] = [flip(row.wrapped_key, at, 0x10), row.wrapped_key.subarray(0, at)]
      await tryKey('wrapped key flipped', projectId, { ...row, wrapped_key: flipped }, own.slice(0, 1))
      await tryKey('wrapped key cut', projectId, { ...row, wrapped_key: cut }, own.slice(0, 1))
    }
  }
  tally.report(t, {
    "another project's wrapped key": 72,
    "another project's wrapped key and secrets": 72,
    'another master key claimed': 36,
    'another key under the same name': 36,
    'another master key claimed, names swapped': 36,
    'wrapped key flipped': 3 * 61,
    'wrapped key cut': 3 * 61,
  })
  await db.read((tx) => requireAllOpen(tx))
})

test('an error names the location and contains no part of the secret', async () => {
  const [projectId = 0] = await makeProjects(1)
  const bytes = await db.transaction((tx) => vault.seal(tx, projectId, anyPlace, 'whsec_canary'))
  const error = await db
    .read((tx) => vault.open(tx, projectId, { ...anyPlace, rowId: 8 }, bytes))
    .catch((error: unknown) => error)
  const inspected = inspect(error, { depth: 10, showHidden: true })
  assert.match(inspected, new RegExp(`control\\.endpoints/encrypted_secret/${projectId}/8 was altered`))
  assert.ok(!inspected.includes('canary') && !inspected.includes(bytes.toString('hex')), inspected)
  assert.ok(!inspected.includes(one.key.toString('hex').slice(0, 8)))
})

test('the error for an unlisted master key names the key and the setting', async () => {
  const [projectId = 0] = await makeProjects(1)
  const bytes = await db.transaction((tx) => vault.seal(tx, projectId, anyPlace, 'x'))
  const why = await db.read((tx) => refusal(tx, projectId, anyPlace, bytes, new Vault([two])))
  assert.match(why ?? '', /wrapped by the master key "one", which is not in POSTERN_MASTER_KEYS/)
})

test('a project without secrets has no key', async () => {
  const [projectId = 0] = await makeProjects(1)
  const { location, bytes } = sealed[0] ?? assert.fail()
  assert.match((await db.read((tx) => refusal(tx, projectId, location, bytes))) ?? '', /has no key/)
})

test('twenty concurrent first encryptions for a project use one key', async () => {
  const [projectId = 0] = await makeProjects(1)
  const locationOf = (rowId: number) => ({ table: 'control.endpoints', column: 'encrypted_secret', rowId })
  const numbers = Array.from({ length: 20 }, (_, index) => index + 1)
  let arrived = 0
  const allArrived = Promise.withResolvers<void>()
  const all = await Promise.all(
    numbers.map((n) =>
      db.transaction(async (tx) => {
        if (++arrived === numbers.length) allArrived.resolve()
        await allArrived.promise
        return vault.seal(tx, projectId, locationOf(n), `secret ${n}`)
      }),
    ),
  )
  const rows = await database.query('select 1 from control.project_keys where project_id = $1', [projectId])
  assert.equal(rows.length, 1)
  await db.read(async (tx) => {
    for (const [index, bytes] of all.entries()) {
      assert.equal(await vault.open(tx, projectId, locationOf(index + 1), bytes), `secret ${index + 1}`)
    }
  })
})

test('after the first encryption is rolled back, the waiting transaction creates the key', async () => {
  const [projectId = 0] = await makeProjects(1)
  const hasSealed = Promise.withResolvers<void>()
  const maySettle = Promise.withResolvers<void>()
  const undone = assert.rejects(
    db.transaction(async (tx) => {
      await vault.seal(tx, projectId, anyPlace, 'never kept')
      hasSealed.resolve()
      await maySettle.promise
      throw new Error('roll back')
    }),
    /roll back/,
  )
  await hasSealed.promise
  const waiting = db.transaction((tx) => vault.seal(tx, projectId, anyPlace, 'kept'))
  const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await eventually('the second waits for the first', async () => (await database.query(waits)).length > 0)
  maySettle.resolve()
  await undone
  const bytes = await waiting
  assert.equal(await db.read((tx) => vault.open(tx, projectId, anyPlace, bytes)), 'kept')
})

test('a customer encrypts and decrypts only for the project of the transaction; the mail plane only decrypts', async () => {
  const [mine = 0, theirs = 0] = await makeProjects(2)
  const customer = opened.asCustomer().forProject(mine)
  const bytes = await customer.transaction((tx) => vault.seal(tx, mine, anyPlace, 'mine'))
  assert.equal(await customer.read((tx) => vault.open(tx, mine, anyPlace, bytes)), 'mine')
  assert.equal(await opened.as('mail').read((tx) => vault.open(tx, mine, anyPlace, bytes)), 'mine')

  const foreign = await db.transaction((tx) => vault.seal(tx, theirs, anyPlace, 'theirs'))
  assert.match((await customer.read((tx) => refusal(tx, theirs, anyPlace, foreign))) ?? '', /has no key/)
  await assert.rejects(
    customer.transaction((tx) => vault.seal(tx, theirs, anyPlace, 'planted')),
    /row-level security/,
  )
})
