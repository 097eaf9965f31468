import type pg from 'pg'
import { type Catalogue, readCatalogue } from './catalogue.ts'

/**
 * Checks whether a migration is compatible with the previous release. In a rolling upgrade the database is migrated
 * first, and the previous program keeps running next to the new one under load. Objects that the previous program uses
 * must therefore not be removed or narrowed (that is a *contract*, for a later release), and no large table may be
 * locked for long.
 *
 * The file is applied in the caller's transaction; its effects are read from the catalogue, from the locks that the
 * transaction holds, and from the read counters.
 */
export interface Compatibility {
  /** Removed or narrowed objects: allowed only in a contract. */
  contracts: string[]
  /** Long locks: never allowed. */
  blocks: string[]
}

export async function checkCompatibility(client: pg.ClientBase, sql: string): Promise<Compatibility> {
  const before = await readCatalogue(client)
  const filesBefore = await readFiles(client)
  await client.query(sql)
  const after = await readCatalogue(client)
  return {
    contracts: contractsOf(before, after),
    blocks: await blocksOf(client, before, filesBefore),
  }
}

const contractsOf = (before: Catalogue, after: Catalogue): string[] => [
  ...gone('relation', before.relations, after.relations),
  ...gone('column', before.columns, after.columns),
  ...gone('function', before.functions, after.functions),
  ...gone('type', before.types, after.types),
  ...gone('unique index (an ON CONFLICT may name it)', before.uniques, after.uniques),
  ...[...before.grants].filter((grant) => !after.grants.has(grant)).map((grant) => `revoked: ${grant}`),
  ...changed('function has another return type', before.functions, after.functions),
  ...changed('type has another definition', before.types, after.types),
  ...narrowedColumns(before, after),
  ...narrowedTables(before, after),
]

const gone = (what: string, before: Map<string, unknown>, after: Map<string, unknown>): string[] =>
  [...before.keys()].filter((key) => !after.has(key)).map((key) => `${what} is gone: ${key}`)

const changed = (what: string, before: Map<string, string>, after: Map<string, string>): string[] =>
  [...before]
    .filter(([key, value]) => after.has(key) && after.get(key) !== value)
    .map(([key, value]) => `${what}: ${key} (${value} → ${after.get(key)})`)

function narrowedColumns(before: Catalogue, after: Catalogue): string[] {
  return [...after.columns].flatMap(([key, now]) => {
    const then = before.columns.get(key)
    if (!then) {
      const isDemanded = before.relations.has(now.table) && now.isRequired && !now.isFilled
      return isDemanded ? [`new required column without a default: ${key}`] : []
    }
    return [
      ...(then.type === now.type ? [] : [`column has another type: ${key} (${then.type} → ${now.type})`]),
      ...(now.isRequired && !then.isRequired ? [`column is required now: ${key}`] : []),
      ...(then.isFilled && !now.isFilled ? [`column no longer has a default: ${key}`] : []),
    ]
  })
}

/** New constraints on existing tables. */
function narrowedTables(before: Catalogue, after: Catalogue): string[] {
  const fresh = <V extends { table: string }>(then: Map<string, V>, now: Map<string, V>): [string, V][] =>
    [...now].filter(([key, { table }]) => !then.has(key) && before.relations.has(table))
  return [
    ...fresh(before.uniques, after.uniques).map(([key]) => `must be unique now: ${key}`),
    ...fresh(before.constraints, after.constraints)
      .filter(([, { isValidated }]) => isValidated)
      .map(([key]) => `validated constraint: ${key}; add it as NOT VALID, and validate it in the next file`),
    ...[...after.policies].flatMap(([key, { table, rule }]) => {
      if (!before.relations.has(table) || before.policies.get(key)?.rule === rule) return []
      return [`changed row-level security: ${key}`]
    }),
    ...gone('policy', before.policies, after.policies).filter((text) => !text.includes('row-level security')),
  ]
}

/** One entry for each table and partition: its root table, its file, and the number of full scans by this session. */
type Files = Map<string, { table: string; file: string; scans: number }>

async function readFiles(client: pg.ClientBase): Promise<Files> {
  const { rows } = await client.query<{ oid: string; table: string; file: string; scans: number }>(
    `select oid::text, coalesce(pg_partition_root(oid), oid)::regclass::text as table,
            pg_relation_filenode(oid)::text as file, pg_stat_get_xact_numscans(oid)::int as scans
       from pg_class where relnamespace in ('control'::regnamespace, 'mail'::regnamespace) and relkind in ('r', 'p')`,
  )
  return new Map(rows.map(({ oid, ...file }) => [oid, file]))
}

/** Tables that get rows for every message or every administrative operation, and therefore grow to millions of rows. */
const isLarge = (table: string): boolean => /^(mail\.|control\.(audit|idempotency|denials))/.test(table)

/** Lock modes that block writes; the last one also blocks reads. */
const strongModes = ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock']

async function blocksOf(client: pg.ClientBase, before: Catalogue, filesBefore: Files): Promise<string[]> {
  const filesAfter = await readFiles(client)
  const moved = (of: 'file' | 'scans'): string[] =>
    [...filesBefore]
      .filter(([oid, then]) => filesAfter.has(oid) && filesAfter.get(oid)?.[of] !== then[of])
      .map(([, { table }]) => table)
  const rewritten = moved('file')
  const read = moved('scans')
  const { rows } = await client.query<{ table: string }>(
    `select distinct coalesce(pg_partition_root(relation), relation)::regclass::text as table from pg_locks
      where locktype = 'relation' and pid = pg_backend_pid() and granted and mode = any ($1)`,
    [strongModes],
  )
  const held = rows.map(({ table }) => table).filter((table) => before.relations.has(table) && isLarge(table))
  return [
    ...unique(rewritten).map((table) => `${table} is rewritten`),
    ...unique(held)
      .filter((table) => read.includes(table))
      .map((table) => `${table} is scanned completely while writes are blocked`),
    ...unique(held)
      .filter((table) => read.some((other) => other !== table))
      .map(
        (table) => `${table} is locked while another table is scanned completely; split it into two files`,
      ),
  ]
}

const unique = (words: readonly string[]): string[] => [...new Set(words)].sort()
