import { Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'
import type { ReadTx, Schema } from '../../platform/db/db.ts'
import { pgTypes } from '../../platform/db/pg-types.ts'
import { cleanUp } from '../harness/cleanup.ts'
import type { TestDatabase } from '../harness/database.ts'

/**
 * The query plan that PostgreSQL chooses for a statement under the administrative role, with the current statistics.
 */
export interface Plan {
  /** Tables that are scanned sequentially. */
  scanned: string[]
  /** Tables whose rows are read and then discarded by a filter instead of an index condition. */
  filtered: { table: string; condition: string }[]
  text: string
}

/** Runs `work` once, then explains each of its statements with the settings that were in effect when it ran. */
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
      return plans
    } finally {
      await client.query('rollback')
      client.release()
    }
  }
}

interface Node {
  'Node Type': string
  'Relation Name'?: string
  Filter?: string
  Plans?: Node[]
}

async function planOf(client: pg.PoolClient, sql: string, parameters: readonly unknown[]): Promise<Plan> {
  // Planning on a busy machine can exceed the statement timeout.
  await client.query('set local statement_timeout = 0')
  const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Node }[] }>(`explain (format json) ${sql}`, [
    ...parameters,
  ])
  const nodes = rows.flatMap((row) => row['QUERY PLAN'].flatMap(({ Plan }) => allNodes(Plan)))
  const reads = nodes.flatMap((node) => {
    const table = node['Relation Name']
    return table === undefined
      ? []
      : [{ table, isSequential: node['Node Type'] === 'Seq Scan', condition: node.Filter }]
  })
  return {
    scanned: reads.flatMap(({ table, isSequential }) => (isSequential ? [table] : [])),
    filtered: reads.flatMap(({ table, condition }) =>
      condition === undefined ? [] : [{ table, condition }],
    ),
    text: JSON.stringify(rows, null, 1),
  }
}

const allNodes = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(allNodes)]
