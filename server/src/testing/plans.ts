import { Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'
import type { ReadTx, Schema } from '../platform/db/db.ts'
import { pgTypes } from '../platform/db/pg-types.ts'
import { cleanUp } from './cleanup.ts'
import type { TestDatabase } from './database.ts'

/** How PostgreSQL goes about what a piece of code asks of it, as the administrative role and on its statistics. */
export interface Plan {
  /** Tables that are read from end to end. */
  scanned: string[]
  text: string
}

/** Runs `work` once, and then asks for the plan of each of its statements, under the settings it makes between them. */
export function planner({ url }: TestDatabase): (work: (tx: ReadTx) => Promise<unknown>) => Promise<Plan[]> {
  const pool = new pg.Pool({
    connectionString: url,
    types: pgTypes,
    max: 1,
    options: '-c role=postern_admin -c search_path=pg_catalog -c TimeZone=UTC -c jit=off',
  })
  let sent: { sql: string; parameters: readonly unknown[] }[] = []
  const kysely = new Kysely<Schema>({
    dialect: new PostgresDialect({ pool }),
    log: ({ query: { sql, parameters } }) => void sent.push({ sql, parameters }),
  })
  cleanUp(() => kysely.destroy())
  return async (work) => {
    sent = []
    await kysely.transaction().execute((tx) => work(tx as Transaction<Schema> as ReadTx))
    const statements = sent.filter(({ sql }) => !/^(begin|commit|start transaction)/i.test(sql))
    const client = await pool.connect()
    try {
      await client.query('begin')
      const plans: Plan[] = []
      for (const { sql, parameters } of statements) {
        if (/^\s*(select|with)/i.test(sql)) plans.push(await planOf(client, sql, parameters))
        else await client.query(sql)
      }
      await client.query('rollback')
      return plans
    } finally {
      client.release()
    }
  }
}

async function planOf(client: pg.PoolClient, sql: string, parameters: readonly unknown[]): Promise<Plan> {
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${sql}`, [...parameters])
  const lines = rows.map((row) => row['QUERY PLAN'])
  return {
    scanned: lines.flatMap((line) => /Seq Scan on (\S+)/.exec(line)?.[1] ?? []),
    text: lines.join('\n'),
  }
}
