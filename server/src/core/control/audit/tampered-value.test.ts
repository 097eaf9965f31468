import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type pg from 'pg'
import { type AuditTable, auditTables, intrudedAudit } from '../../../testing/fixtures/audit-intruder.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import type { Verification } from './verify.ts'

/**
 * Every column of the audit, changed one at a time in rows of chance. The columns come from the catalogue: one that
 * is added and left out of the hash fails here. `npm run prove:audit` does it in every row.
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

/** Other values for a column of a type; a variant that changes nothing in a row is left out for it. */
const variants: Record<string, (column: string) => string[]> = {
  bigint: (c) => [`${c} + 1000000`, `coalesce(${c}, 5)`, 'null', '9007199254740993'],
  text: (c) => [`${c} || ' '`, `upper(${c})`, `case ${c} when '' then null else '' end`, 'null'],
  bytea: (c) => [
    `set_byte(${c}, 0, get_byte(${c}, 0) # 1)`,
    `coalesce(${c}, sha256(''))`,
    `substr(${c}, 2)`,
    'null',
  ],
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
    // Numbers that JavaScript reads as the same: 3.0 for 3, and one that differs in its 22nd digit.
    `regexp_replace(${c}::text, '(: \\d{1,15})([,}\\]])', '\\1.0\\2')::jsonb`,
    `replace(${c}::text, '1000000000000000000000', '1000000000000000000001')::jsonb`,
  ],
}

interface Target {
  where: string
  chain: number | null
  seq: number | null
}

/** Every row of a table: how to find it, and the audit row that is to be named for it. */
const targets: Record<AuditTable, string> = {
  audit: `select format('chain = %s and seq = %s', chain, seq) as where, chain::int, seq::int from control.audit`,
  audit_people: `select format('audit_id = %s and part = %L', audit_id, part) as where, chain::int, seq::int
                   from control.audit_people join control.audit on id = audit_id`,
  audit_checkpoints: `select format('id = %s', id) as where, null as chain, null as seq from control.audit_checkpoints`,
  audit_heads: `select format('chain = %s', chain) as where, chain::int, null as seq from control.audit_heads`,
}

/** Undefined when the variant changes nothing, or one of the constraints that are left does not let it. */
async function tamper(table: AuditTable, column: string, value: string, where: string) {
  let changed = 0
  const verification = await verifyAfter(async () => {
    try {
      const { rowCount } = await query(`update control.${table} set ${column} = ${value}
        where ${where} and (${value})::text is distinct from ${column}::text`)
      changed = rowCount ?? 0
    } catch (error) {
      // Not null, unique.
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

describe('a changed value is found', () => {
  for (const { table, column, type } of columns) {
    test(`${table}.${column}`, async (t) => {
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

  test('afterwards everything is as it was', async () => assert.equal((await verify(true)).ok, true))
})
