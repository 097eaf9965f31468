import assert from 'node:assert/strict'
import type { TestDatabase } from './database.ts'

/**
 * Every row of all application tables and every job, each with its xmin. If two dumps are equal, nothing was written in
 * between, not even an update that changed no values. Sequences are excluded, because a rollback does not reset them.
 */
export async function dump(database: TestDatabase): Promise<string[]> {
  const selects = (await filledTables(database)).map(
    (name) => `select '${name} ' || xmin::text || ' ' || row_::text as line from ${name} as row_`,
  )
  const rows = await database.query<{ line: string }>(
    `select line collate "C" as line from (${selects.join(' union all ')}) as rows order by 1`,
  )
  return rows.map(({ line }) => line)
}

/** Most tables are empty partitions. */
async function filledTables(database: TestDatabase, except: readonly string[] = []): Promise<string[]> {
  const tables = await database.query<{ name: string }>(
    `select format('%I.%I', schemas.nspname, tables.relname) as name
       from pg_class as tables join pg_namespace as schemas on schemas.oid = tables.relnamespace
      where tables.relkind = 'r' and pg_relation_size(tables.oid) > 0
        and (schemas.nspname in ('postern', 'control', 'mail')
             or (schemas.nspname = 'jobs' and tables.relname = 'job_common'))`,
  )
  return tables.map(({ name }) => name).filter((name) => !except.includes(name))
}

/**
 * Each table's row count, and the sum of its rows' xmin values. A write produces a row with a higher xmin than all
 * others, so either the sum grows or the count changes.
 */
async function writersOf(database: TestDatabase, except: readonly string[]): Promise<string[]> {
  const counts = (await filledTables(database, except)).map(
    (name) =>
      `select '${name}: rows ' || count(*) || ', written by ' || sum(xmin::text::bigint) as line from ${name} having count(*) > 0`,
  )
  return (await database.query<{ line: string }>(counts.join(' union all ')))
    .map(({ line }) => line)
    .toSorted()
}

/** Checks whether anything was written. Much faster than comparing two dumps. `except` lists tables to ignore. */
export async function watchRows(
  database: TestDatabase,
  { except = [] }: { except?: readonly string[] } = {},
): Promise<{ assertUntouched(message?: string): Promise<void> }> {
  const writers = await writersOf(database, except)
  return {
    async assertUntouched(message = 'something was written') {
      assert.deepEqual(await writersOf(database, except), writers, message)
    },
  }
}
