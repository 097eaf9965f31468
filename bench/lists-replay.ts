import type pg from 'pg'
import type { Statement } from './statements.ts'

/** Repeats statements that the API sent. */
export async function replay(client: pg.Client, statements: Statement[]): Promise<void> {
  for (const { text, values } of statements) await send(client, text, values)
}

async function send(client: pg.Client, text: string, values: (string | null)[]): Promise<void> {
  try {
    await (values.length > 0 ? client.query(text, values) : client.query(text))
  } catch (error) {
    // If this statement times out, the API continues without its result.
    if ((error as { code?: unknown }).code !== '57014') throw error
  }
}

export interface Plan {
  /** Large tables that the plan scans sequentially. */
  scanned: string[]
  text: string
}

const small = ['plans']

/** The query plan of each statement, with the settings that were in effect when it was sent. */
export async function planOf(client: pg.Client, statements: Statement[]): Promise<Plan[]> {
  const plans: Plan[] = []
  for (const { text, values } of statements) {
    if (!/^[\s(]*(select|with)/i.test(text)) {
      // EXPLAIN needs no timeout.
      await send(client, text.replace(/statement_timeout = \d+/, 'statement_timeout = 0'), values)
      continue
    }
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values)
    const lines = rows.map((row) => row['QUERY PLAN'])
    const scanned = lines.flatMap((line) => /Seq Scan on (\S+)/.exec(line)?.[1] ?? [])
    plans.push({ scanned: scanned.filter((name) => !small.includes(name)), text: lines.join('\n') })
  }
  return plans
}
