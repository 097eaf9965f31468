import type { TestDatabase } from './database.ts'

/**
 * Every row of every table of ours, and every job, each with the transaction that wrote it: where two dumps are equal,
 * nothing was written in between, not even the same values again. Sequences are left out: a number that was taken does
 * not come back with a rollback.
 */
export async function dump(database: TestDatabase): Promise<string[]> {
  // Most are partitions in which nothing is yet.
  const tables = await database.query<{ name: string }>(
    `select format('%I.%I', schemas.nspname, tables.relname) as name
       from pg_class as tables join pg_namespace as schemas on schemas.oid = tables.relnamespace
      where tables.relkind = 'r' and pg_relation_size(tables.oid) > 0
        and (schemas.nspname in ('postern', 'control', 'mail')
             or (schemas.nspname = 'jobs' and tables.relname = 'job_common'))`,
  )
  const selects = tables.map(
    ({ name }) => `select '${name} ' || xmin::text || ' ' || row_::text as line from ${name} as row_`,
  )
  const rows = await database.query<{ line: string }>(
    `select line collate "C" as line from (${selects.join(' union all ')}) as rows order by 1`,
  )
  return rows.map(({ line }) => line)
}

/** Without the rows of one table. */
export const without = (table: string, lines: string[]): string[] =>
  lines.filter((line) => !line.startsWith(`${table} `))
