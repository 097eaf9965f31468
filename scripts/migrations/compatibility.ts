import type pg from 'pg'
import { type Catalogue, readCatalogue } from './catalogue.ts'

/**
 * Checks whether a migration is compatible with the previous release. In a rolling upgrade the database is migrated first,
 * and the previous program continues beside the new one under load. So what that program uses must not be removed or
 * narrowed (that is a *contract*, for a later release), and no large table may be locked for long.
 *
 * The file is applied in the caller's transaction; its effects are read from the catalogue, from the locks that the
 * transaction holds, and from the read counters.
 */
export interface Compatibility {
  /** Removed or narrowed: allowed only in a contract. */
  contracts: string[]
  /** Never allowed. */
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
  ...changed('function gives back something else', before.functions, after.functions),
  ...changed('type allows something else', before.types, after.types),
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
      return isDemanded ? [`new column that must be filled: ${key}; give it a default`] : []
    }
    return [
      ...(then.type === now.type ? [] : [`column has another type: ${key} (${then.type} → ${now.type})`]),
      ...(now.isRequired && !then.isRequired ? [`column must be filled now: ${key}`] : []),
      ...(then.isFilled && !now.isFilled ? [`column is no longer filled by itself: ${key}`] : []),
    ]
  })
}

/** New rules of tables that were there. */
function narrowedTables(before: Catalogue, after: Catalogue): string[] {
  const fresh = <V extends { table: string }>(then: Map<string, V>, now: Map<string, V>): [string, V][] =>
    [...now].filter(([key, { table }]) => !then.has(key) && before.relations.has(table))
  return [
    ...fresh(before.uniques, after.uniques).map(([key]) => `must be unique now: ${key}`),
    ...fresh(before.constraints, after.constraints)
      .filter(([, { isValidated }]) => isValidated)
      .map(([key]) => `checked at once: ${key}; add it NOT VALID, and validate it in the next file`),
    ...[...after.policies].flatMap(([key, { table, rule }]) => {
      if (!before.relations.has(table) || before.policies.get(key)?.rule === rule) return []
      return [`another rule of row-level security: ${key}`]
    }),
    ...gone('policy', before.policies, after.policies).filter((text) => !text.includes('row-level security')),
  ]
}

/** One row for each table and partition: whose it is, what it is kept in, and how often this session has read all of it. */
type Files = Map<string, { table: string; file: string; scans: number }>

async function readFiles(client: pg.ClientBase): Promise<Files> {
  const { rows } = await client.query<{ oid: string; table: string; file: string; scans: number }>(
    `select oid::text, coalesce(pg_partition_root(oid), oid)::regclass::text as table,
            pg_relation_filenode(oid)::text as file, pg_stat_get_xact_numscans(oid)::int as scans
       from pg_class where relnamespace in ('control'::regnamespace, 'mail'::regnamespace) and relkind in ('r', 'p')`,
  )
  return new Map(rows.map(({ oid, ...file }) => [oid, file]))
}

/** Every mail has rows in these, every act of an administrator in those: in time they have millions. */
const isLarge = (table: string): boolean => /^(mail\.|control\.(audit|idempotency|denials))/.test(table)

/** Held in one of these, nobody can write to a table, and in the last nobody can read it. */
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
    ...unique(rewritten).map((table) => `${table} is written anew as a whole`),
    ...unique(held)
      .filter((table) => read.includes(table))
      .map((table) => `${table} is read as a whole while nobody can write to it`),
    ...unique(held)
      .filter((table) => read.some((other) => other !== table))
      .map((table) => `${table} is held while something else is read as a whole; make two files of it`),
  ]
}

const unique = (words: readonly string[]): string[] => [...new Set(words)].sort()
