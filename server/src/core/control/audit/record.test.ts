import assert from 'node:assert/strict'
import { createHash, randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import { auditEntry, everyKind, recordEach } from '../../../testing/fixtures/audit-entries.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { actorKinds } from './chain.ts'
import { recordAudit, shell } from './record.ts'
import { verifyAudit } from './verify.ts'

const database = await testDatabase()
const db = openDatabase(database, { poolSize: 8 }).as('admin')
const isIntact = async () => {
  const { ok, first_bad } = await verifyAudit(db, { keys: new Map() })
  assert.equal(first_bad, null)
  return ok
}

describe('recordAudit', () => {
  test('writes hashes that can be verified with SHA-256 and canonical JSON', async () => {
    const entry = auditEntry({
      projectId: 90,
      subject: { email: 'bob@example.com', name: null },
      reason: 'why',
    })
    await recordEach(db, [entry, entry])
    const [first, second] = await database.query<Record<string, string>>(`
      select a.*, encode(actor_digest, 'hex') as actor, encode(subject_digest, 'hex') as subject,
             to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at_text,
             encode(prev_hash, 'hex') as prev, encode(hash, 'hex') as hash
        from control.audit a where chain = 90 order by seq`)
    const at = `${first?.['at_text']?.replace(/\.?0+$/, '')}Z`
    const canonical =
      `{"actor_digest":"${first?.['actor']}","actor_id":1,"actor_kind":"person","after":{"name":"New"},"at":"${at}",` +
      `"before":{"name":"Old"},"bulk_id":null,"chain":90,"id":${first?.['id']},"limit_exception":null,"operation":"projects.edit",` +
      `"project_id":90,"reason":"why","related":null,"request_id":"${entry.requestId}","resource_id":"7",` +
      `"resource_type":"project","seq":1,"subject_digest":"${first?.['subject']}","xid":"${first?.['xid']}"}`
    const hash = createHash('sha256').update(Buffer.alloc(32)).update(canonical).digest('hex')
    assert.equal(first?.['hash'], hash)
    assert.equal(second?.['prev'], hash)

    const [person] = await database.query<{ salt: Buffer; digest: Buffer }>(`
      select salt, a.subject_digest as digest from control.audit_people p join control.audit a on a.id = p.audit_id
       where a.chain = 90 and a.seq = 1 and part = 'subject'`)
    const canonicalPerson =
      `{"audit_id":${first?.['id']},"email":"bob@example.com","ip":null,"name":null,"part":"subject",` +
      `"project_id":90,"user_agent":null}`
    const digest = createHash('sha256')
      .update(person?.salt ?? '')
      .update(canonicalPerson)
      .digest('hex')
    assert.equal(person?.digest.toString('hex'), digest)
  })

  test('records the kind of actor and the bulk action', async () => {
    const bulkId = randomUUIDv7()
    // The database returns UUIDs in lower case, and the hash must match.
    const written = bulkId.toUpperCase()
    const entries = actorKinds.map((kind, index) => {
      const id = kind === 'shell' || kind === 'system' ? 0 : index + 1
      return auditEntry({ projectId: 96, actor: { ...shell('test'), kind, id }, bulkId: written })
    })
    await recordEach(db, entries)
    const rows = await database.query(
      'select actor_kind, bulk_id from control.audit where chain = 96 order by seq',
    )
    assert.deepEqual(
      rows,
      actorKinds.map((actor_kind) => ({ actor_kind, bulk_id: bulkId })),
    )
    assert.ok(await isIntact())
  })

  test('stores personal data outside the chain, with a salt for each entry', async () => {
    await recordEach(db, everyKind)
    const text = JSON.stringify(await database.query('select * from control.audit where chain = 8'))
    assert.ok(!/example\.com|Bob|192\.0\.2/.test(text), text)
    const salts = await database.query('select distinct salt from control.audit_people')
    const people = await database.query('select 1 from control.audit_people')
    assert.equal(salts.length, people.length)
  })

  test('serializes appends to one chain without gaps, and does not block other chains', async () => {
    const blocker = Promise.withResolvers<void>()
    const held = db.transaction(async (tx) => {
      await recordAudit(tx, auditEntry({ projectId: 91 }))
      await blocker.promise
    })
    const others = Promise.all(
      Array.from({ length: 20 }, () =>
        db.transaction((tx) => recordAudit(tx, auditEntry({ projectId: 92 }))),
      ),
    )
    await others
    blocker.resolve()
    await held
    const [count] = await database.query(
      `select max(seq)::int as last, count(*)::int from control.audit where chain = 92`,
    )
    assert.deepEqual(count, { last: 20, count: 20 })
    assert.ok(await isIntact())
  })

  test('leaves exactly one row for each committed transaction, even when others fail', async () => {
    const chains = [93, 94, 95]
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        try {
          await db.transaction(async (tx) => {
            await recordAudit(
              tx,
              auditEntry({
                projectId: chains[i % 3] ?? 0,
                change: { resource: 'x', id: i, before: null, after: null },
              }),
            )
            if (i % 4 === 0) throw new Error('rolled back')
          })
          return [String(i)]
        } catch {
          return []
        }
      }),
    )
    const rows = await database.query<{ id: string }>(
      `select resource_id as id from control.audit where chain in (93, 94, 95) and resource_type = 'x'`,
    )
    assert.deepEqual(rows.map(({ id }) => id).sort(), outcomes.flat().sort())
    // Ids are assigned under the lock of the head, so they increase within a chain.
    const decreasing = await database.query(
      `select from (select id, lag(id) over (partition by chain order by seq) as before from control.audit) ids
        where id <= before`,
    )
    assert.equal(decreasing.length, 0)
    assert.ok(await isIntact())
  })

  test('replaces characters that PostgreSQL cannot store', async () => {
    await recordEach(db, [
      auditEntry({ reason: 'half \ud800 and nul \0', subject: { email: 'a\udfff', name: '\0' } }),
    ])
    assert.ok(await isIntact())
  })
})

describe('control.audit', () => {
  const insert = (kind: string, id: number) =>
    database.query(
      `insert into control.audit (chain, seq, at, actor_kind, actor_id, actor_digest, request_id, operation, resource_type,
         resource_id, xid, prev_hash, hash)
       values (0, 1000, now(), ${kind}, ${id}, sha256('a'), 'r', 'plans.edit', 'plan', '1', pg_current_xact_id(),
         sha256('b'), sha256('c'))`,
    )

  test('rejects a row without a kind of actor, with an unknown kind, or with an id that does not match the kind', async () => {
    await assert.rejects(insert('null', 1), { code: '23502' })
    for (const [kind, id] of [
      ['robot', 1],
      ['person', 0],
      ['policy', 0],
      ['service_account', 0],
      ['shell', 1],
      ['system', 1],
      ['person', -1],
    ] as const) {
      await assert.rejects(insert(`'${kind}'`, id), { code: '23514' }, `${kind} ${id}`)
    }
  })
})
