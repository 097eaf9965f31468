import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Postern } from './postern.ts'

/** What the API sends to PostgreSQL, read from PostgreSQL's own log: nobody's idea of it. */
export interface Statement {
  text: string
  /** Values of $1, $2, … as they were sent. */
  values: (string | null)[]
  /** The API had it prepared by name, and PostgreSQL its plan. */
  isNamed: boolean
}

const prefix = 'bench|%a|%p|'

/** The statements that the API sends while `work` runs, in order, one connection after the other. */
export async function captureStatements(
  { superuser, postgresLog }: Postern,
  work: () => Promise<void>,
): Promise<Statement[]> {
  const set = async (settings: Record<string, string>): Promise<void> => {
    for (const [name, value] of Object.entries(settings)) {
      await superuser.query(`alter system set ${name} = '${value}'`)
    }
    await superuser.query('select pg_reload_conf()')
    // The first process hands the news on to the others.
    await sleep(500)
  }
  await set({ log_line_prefix: prefix, log_statement: 'all' })
  const before = (await readFile(postgresLog, 'utf8')).length
  await work()
  await set({ log_statement: 'none' })
  return readStatements((await readFile(postgresLog, 'utf8')).slice(before))
}

/** A record begins with the prefix; its further lines begin with a tab. */
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
  return [...byConnection.values()].flat()
}

const readValues = (list: string): (string | null)[] =>
  [...list.matchAll(/\$\d+ = (?:NULL|'((?:[^']|'')*)')/g)].map(([, quoted]) =>
    quoted === undefined ? null : quoted.replaceAll("''", "'"),
  )
