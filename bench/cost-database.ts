import { execFile } from 'node:child_process'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Postern } from './postern.ts'

/** The work done by PostgreSQL, according to pg_stat_statements, table statistics and the WAL. */
export interface Spent {
  statements: { text: string; calls: number; ms: number; walBytes: number; walRecords: number }[]
  /** Bytes of WAL, excluding full-page images, because their number depends on when the last checkpoint ran. */
  walBytes: number
  walImageBytes: number
  rows: Rows
  tables: (Rows & { name: string })[]
}

interface Rows {
  inserted: number
  updated: number
  /** Updates that changed no index (heap-only tuples). */
  inPlace: number
  deleted: number
  /** Dead rows left for VACUUM. */
  dead: number
}

/** An idle session flushes its table statistics after ten seconds. */
const untilCountedMs = 11_000

export async function readyToCost({ superuser }: Postern): Promise<void> {
  await superuser.query('create extension if not exists pg_stat_statements with schema public')
  // Otherwise autovacuum's work would be counted.
  await superuser.query('alter system set autovacuum = off')
  await superuser.query('select pg_reload_conf()')
}

/** Measures until the returned function is called. */
export async function readCost(postern: Postern): Promise<() => Promise<Spent>> {
  const { superuser } = postern
  await superuser.query('vacuum analyze')
  await superuser.query('checkpoint')
  await sleep(untilCountedMs)
  const before = await rowsByTable(postern)
  await superuser.query('select public.pg_stat_statements_reset()')
  const from = await endOfLog(postern)
  return async () => {
    const to = await endOfLog(postern)
    const statements = await statementsSince(postern)
    await sleep(untilCountedMs)
    const tables = (await rowsByTable(postern)).flatMap(({ name, ...now }) => {
      const was = before.find((table) => table.name === name)
      const since = (key: keyof Rows): number => now[key] - (was?.[key] ?? 0)
      const counts = {
        inserted: since('inserted'),
        updated: since('updated'),
        inPlace: since('inPlace'),
        deleted: since('deleted'),
        dead: since('dead'),
      }
      return Object.values(counts).some((count) => count !== 0) ? [{ name, ...counts }] : []
    })
    const sum = (key: keyof Rows): number => tables.reduce((total, table) => total + table[key], 0)
    return {
      statements,
      ...(await sizeOfLog(postern, from, to)),
      rows: {
        inserted: sum('inserted'),
        updated: sum('updated'),
        inPlace: sum('inPlace'),
        deleted: sum('deleted'),
        dead: sum('dead'),
      },
      tables,
    }
  }
}

async function endOfLog({ superuser }: Postern): Promise<string> {
  const { rows } = await superuser.query<{ lsn: string }>('select pg_current_wal_flush_lsn()::text as lsn')
  return rows[0]?.lsn ?? ''
}

/** Excludes the benchmark's own statements. */
async function statementsSince({ superuser }: Postern): Promise<Spent['statements']> {
  const { rows } = await superuser.query(
    `select query as text, calls::int, total_exec_time as ms, wal_bytes::float8 as "walBytes",
            wal_records::int as "walRecords"
       from public.pg_stat_statements
      where userid <> 'postgres'::regrole and query !~ 'pg_stat_statements'`,
  )
  return rows
}

/** Partitions are combined into one table. */
async function rowsByTable({ superuser }: Postern): Promise<(Rows & { name: string })[]> {
  const { rows } = await superuser.query(
    `select schemaname || '.' || regexp_replace(relname, '_[0-9]{8}$', '') as name, sum(n_tup_ins)::int as inserted,
            sum(n_tup_upd)::int as updated, sum(n_tup_hot_upd)::int as "inPlace", sum(n_tup_del)::int as deleted,
            sum(n_dead_tup)::int as dead
       from pg_stat_user_tables group by 1`,
  )
  return rows
}

const exec = promisify(execFile)

async function sizeOfLog(
  { superuser, postgresLog }: Postern,
  from: string,
  to: string,
): Promise<{ walBytes: number; walImageBytes: number }> {
  const { rows } = await superuser.query<{ version: string }>(
    `select current_setting('server_version_num')::int / 10000 as version`,
  )
  const program = `/usr/lib/postgresql/${rows[0]?.version}/bin/pg_waldump`
  const log = path.join(path.dirname(postgresLog), 'data/pg_wal')
  const { stdout } = await exec(program, ['--stats', '--path', log, '--start', from, '--end', to])
  // Total  count  record size [%]  image size [%]  combined size [%]
  const [, walBytes, walImageBytes] = /^Total\s+\d+\s+(\d+)\s+\[[^\]]*\]\s+(\d+)/m.exec(stdout) ?? []
  if (walBytes === undefined) throw new Error(`unexpected output of pg_waldump:\n${stdout}`)
  return { walBytes: Number(walBytes), walImageBytes: Number(walImageBytes) }
}
