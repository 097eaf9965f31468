import { open, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Postern } from './postern.ts'

/** A statement with the time PostgreSQL took to parse, plan and execute it. */
export interface Timed {
  text: string
  ms: number
}

/**
 * The statements that processes with this name (such as `postern worker`) send while `work` runs, read from
 * PostgreSQL's log.
 */
export async function timeStatements(
  { superuser, postgresLog }: Postern,
  application: string,
  work: () => Promise<void>,
): Promise<Timed[]> {
  const set = async (settings: Record<string, string>): Promise<void> => {
    for (const [name, value] of Object.entries(settings)) {
      await superuser.query(`alter system set ${name} = '${value}'`)
    }
    await superuser.query('select pg_reload_conf()')
    // The postmaster passes the reload on to the other processes.
    await sleep(500)
  }
  await set({
    log_line_prefix: 'bench|%a|%p|',
    log_parameter_max_length: '0',
    log_min_duration_statement: '0',
  })
  const { size: before } = await stat(postgresLog)
  await work()
  await set({ log_min_duration_statement: '-1' })
  return readTimings(await readFrom(postgresLog, before), application)
}

async function readFrom(file: string, offset: number): Promise<string> {
  const log = await open(file)
  const { size } = await log.stat()
  const { buffer } = await log.read(Buffer.alloc(size - offset), 0, size - offset, offset)
  await log.close()
  return buffer.toString()
}

/** A record begins with the prefix; continuation lines begin with a tab. The steps of a statement are consecutive. */
function readTimings(log: string, application: string): Timed[] {
  const timed: Timed[] = []
  const underWay = new Map<string, Timed>()
  for (const record of log.replaceAll('\n\t', '\n').split(/^bench\|/m)) {
    const [, from, connection = '', duration, step, text = ''] =
      /^([^|]*)\|(\d+)\|LOG: {2}duration: ([\d.]+) ms {2}(\w+)[^:]*: ([\s\S]*)$/.exec(record) ?? []
    if (from !== application) continue
    const known = underWay.get(connection)
    const isNext = !known || known.text !== text || step === 'parse' || step === 'statement'
    const statement = isNext ? { text, ms: 0 } : known
    if (isNext) {
      timed.push(statement)
      underWay.set(connection, statement)
    }
    statement.ms += Number(duration)
  }
  return timed
}
