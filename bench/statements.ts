import { readFile, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Postern } from './postern.ts'

/** The API's statements, read from PostgreSQL's log. */
export interface Statement {
  text: string
  /** Values of $1, $2, … as sent. */
  values: (string | null)[]
  /** Whether it was a named prepared statement. */
  isNamed: boolean
}

const prefix = 'bench|%a|%p|'

/** The statements that the API sends while `work` runs, in order, grouped by connection. */
export async function captureStatements(postern: Postern, work: () => Promise<void>): Promise<Statement[]> {
  const [statements = []] = await captureEach(postern, [work])
  return statements
}

/** The same for several functions, run sequentially. */
export async function captureEach(
  { superuser, postgresLog }: Postern,
  works: readonly (() => Promise<void>)[],
): Promise<Statement[][]> {
  const set = async (settings: Record<string, string>): Promise<void> => {
    for (const [name, value] of Object.entries(settings)) {
      await superuser.query(`alter system set ${name} = '${value}'`)
    }
    await superuser.query('select pg_reload_conf()')
    // The postmaster passes the reload on to the other processes.
    await sleep(500)
  }
  await set({ log_line_prefix: prefix, log_statement: 'all' })
  const { size: before } = await stat(postgresLog)
  for (const work of works) {
    await superuser.query(boundary)
    await work()
  }
  await set({ log_statement: 'none' })
  const log = (await readFile(postgresLog)).subarray(before).toString()
  return log.split(`LOG:  statement: ${boundary}\n`).slice(1).map(readStatements)
}

const boundary = "select 'the next capture begins'"

/** A record begins with the prefix; continuation lines begin with a tab. */
function readStatements(log: string): Statement[] {
  const byConnection = new Map<string, Statement[]>()
  for (const record of log.replaceAll('\n\t', '\n').split(/^bench\|/m)) {
    const [, connection = '', message = ''] = /^postern api\|(\d+)\|([\s\S]*?)\s*$/.exec(record) ?? []
    const statements = byConnection.get(connection) ?? []
    byConnection.set(connection, statements)
    const [, name, text] = /^LOG: {2}(statement|execute [^:]+): ([\s\S]*)$/.exec(message) ?? []
    const [, values] = /^DETAIL: {2}parameters: ([\s\S]*)$/.exec(message) ?? []
    if (name !== undefined && text !== undefined) {
      statements.push({ text, values: [], isNamed: !['statement', 'execute <unnamed>'].includes(name) })
    } else if (values !== undefined) statements.at(-1)?.values.push(...readValues(values))
  }
  return [...byConnection.values()].filter((statements) => !statements.some(isByTime)).flat()
}

/** The API reads its signing keys again from time to time, whatever is requested, with a connection of another role. */
const isByTime = ({ text }: Statement): boolean => text.includes('signing_keys')

const readValues = (list: string): (string | null)[] =>
  [...list.matchAll(/\$\d+ = (?:NULL|'((?:[^']|'')*)')/g)].map(([, quoted]) =>
    quoted === undefined ? null : quoted.replaceAll("''", "'"),
  )
