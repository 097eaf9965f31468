import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type pg from 'pg'
import { type AuditTable, auditTables, intrudedAudit } from '../../../testing/fixtures/audit-intruder.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import type { Verification } from './verify.ts'

/**
 * Changes every column of the audit tables, one at a time, in random rows. The columns are read from the catalog, so this
 * test fails for a new column that is not hashed. `npm run prove:audit` changes every row.
 */
const rowsEach = process.env['POSTERN_TEST_TAMPERINGS'] === undefined ? 5 : Number.POSITIVE_INFINITY
const chance = new Chance(seed)

const { database, query, verify, verifyAfter } = await intrudedAudit()

const columns = await database.query<{ table: AuditTable; column: string; type: string }>(
  `select relname as "table", attname as column, format_type(atttypid, atttypmod) as type
     from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = 'control'::regnamespace and relname = any($1) and attnum > 0 and not attisdropped
    order by 1, attnum`,
  [auditTables],
)

/** Other values for a column, by type. A variant that does not change a row is skipped. */
const variants: Record<string, (column: string) => string[]> = {
  bigint: (c) => [`${c} + 1000000`, `coalesce(${c}, 5)`, 'null', '9007199254740993'],
  text: (c) => [`${c} || ' '`, `upper(${c})`, `case ${c} when '' then null else '' end`, 'null'],
  bytea: (c) => [
    `set_byte(${c}, 0, get_byte(${c}, 0) # 1)`,
    `coalesce(${c}, sha256(''))`,
    `substr(${c}, 2)`,
    'null',
  ],
  uuid: () => ['gen_random_uuid()', 'null'],
  xid8: (c) => [`(${c}::text::bigint + 1)::text::xid8`],
  'timestamp with time zone': (c) => [
    `${c} + interval '1 microsecond'`,
    `(${c}::text || ' BC')::timestamptz`,
    `'infinity'`,
  ],
  jsonb: (c) => [
    'null',
    `'null'::jsonb`,
    `'"null"'::jsonb`,
    `'{}'::jsonb`,
    `case jsonb_typeof(${c}) when 'object' then ${c} || '{"more": 1}' else ${c} || '[1]' end`,
    // Numbers that JavaScript cannot distinguish: 3.0 and 3, and numbers that differ in the 22nd digit.
    `regexp_replace(${c}::text, '(: \\d{1,15})([,}\\]])', '\\1.0\\2')::jsonb`,
    `replace(${c}::text, '1000000000000000000000', '1000000000000000000001')::jsonb`,
  ],
}

interface Target {
  where: string
  chain: number | null
  seq: number | null
}

/** Queries for the rows of each table, with the audit row that verification must report. */
const targets: Record<AuditTable, string> = {
  audit: `select format('chain = %s and seq = %s', chain, seq) as where, chain::int, seq::int from control.audit`,
  audit_people: `select format('audit_id = %s and part = %L', audit_id, part) as where, chain::int, seq::int
                   from control.audit_people join control.audit on id = audit_id`,
  audit_checkpoints: `select format('id = %s', id) as where, null as chain, null as seq from control.audit_checkpoints`,
  audit_heads: `select format('chain = %s', chain) as where, chain::int, null as seq from control.audit_heads`,
}

/** Undefined if the variant changes nothing or violates a remaining constraint. */
async function tamper(table: AuditTable, column: string, value: string, where: string) {
  let changed = 0
  const verification = await verifyAfter(async () => {
    try {
      const { rowCount } = await query(`update control.${table} set ${column} = ${value}
        where ${where} and (${value})::text is distinct from ${column}::text`)
      changed = rowCount ?? 0
    } catch (error) {
      // Such as not null or unique.
      if (!['23502', '23505'].includes((error as pg.DatabaseError).code ?? '')) throw error
    }
  })
  return changed === 0 ? undefined : verification
}

function assertFound(
  { ok, first_bad: bad }: Verification,
  { table, column }: { table: AuditTable; column: string },
  { chain, seq }: Target,
  what: string,
): void {
  const message = `${what}: ${bad?.problem}`
  assert.equal(ok, false, message)
  if (table === 'audit_checkpoints') assert.match(bad?.problem ?? '', /^Checkpoint \d+ /, message)
  else if (table === 'audit_heads' && column !== 'chain') assert.equal(bad?.chain, chain, message)
  else if (table === 'audit_heads') assert.match(bad?.problem ?? '', /chain/i, message)
  else if (column === 'audit_id') assert.match(bad?.problem ?? '', /which does not exist/, message)
  else assert.deepEqual([bad?.chain, bad?.seq], [chain, seq], message)
}

describe('verification', () => {
  for (const { table, column, type } of columns) {
    test(`detects a change to ${table}.${column}`, async (t) => {
      let cases = 0
      const all = await database.query<{ [K in keyof Target]: Target[K] }>(targets[table])
      const rows = chance.some(rowsEach, all)
      for (const row of rows) {
        let changes = 0
        for (const value of variants[type]?.(column) ?? []) {
          const verification = await tamper(table, column, value, row.where)
          if (!verification) continue
          changes++
          assertFound(verification, { table, column }, row, `${column} = ${value} where ${row.where}`)
        }
        assert.ok(changes > 0, `no variant of ${table}.${column} where ${row.where}`)
        cases += changes
      }
      t.diagnostic(
        `${cases} changes in ${rows.length} of ${all.length} rows (POSTERN_TEST_SEED=${chance.seed})`,
      )
    })
  }

  test('finds no problem after all changes are undone', async () =>
    assert.equal((await verify(true)).ok, true))
})
