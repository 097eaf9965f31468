import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { availableParallelism, cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type pg from 'pg'

const exec = promisify(execFile)

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const [low = Number.NaN, high = low] = sorted.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1)
  return (low + high) / 2
}

export const percentile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN

/** `median (least–most)` */
export function spread(values: number[], digits = 0): string {
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)].map((value) =>
    value.toLocaleString('en-GB', { minimumFractionDigits: digits, maximumFractionDigits: digits }),
  )
  return `${middle} (${least}–${most})`
}

/** A Markdown table. */
export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}

/** The time, commit, machine and versions of a measurement. */
export async function circumstances(client: pg.Client | pg.Pool): Promise<string> {
  const { rows } = await client.query<{ version: string; fsync: string; commit: string }>(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
            current_setting('synchronous_commit') as commit`,
  )
  return [
    `${new Date().toISOString().slice(0, 16)}Z`,
    await commit(),
    `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'})`,
    `PostgreSQL ${rows[0]?.version} (fsync ${rows[0]?.fsync}, synchronous_commit ${rows[0]?.commit})`,
    `Node.js ${process.version}`,
  ].join(', ')
}

async function commit(): Promise<string> {
  const git = async (...args: string[]): Promise<string> =>
    (await exec('git', args, { cwd: import.meta.dirname })).stdout.trim()
  try {
    const isClean = (await git('status', '--porcelain')) === ''
    return `commit ${await git('rev-parse', '--short', 'HEAD')}${isClean ? '' : ' with uncommitted changes'}`
  } catch {
    return 'commit unknown'
  }
}

const ticksPerSecond = 100

/**
 * The CPU seconds used so far by a process and, with `family`, its children. Children that have exited are included in
 * the parent's total.
 */
export async function cpuSeconds(pid: number, family = false): Promise<number> {
  const numbers = family ? (await readdir('/proc')).filter((name) => /^\d+$/.test(name)) : [String(pid)]
  let ticks = 0
  for (const number of numbers) {
    const stat = await readFile(`/proc/${number}/stat`, 'utf8').catch(() => '')
    // The name in parentheses can contain spaces; `state` is the first field after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number)
    if (number === String(pid)) ticks += user + system + endedUser + endedSystem
    else if (family && fields[1] === String(pid)) ticks += user + system
  }
  return ticks / ticksPerSecond
}

/** The CPU seconds that the whole machine has used since it started. */
export async function machineCpuSeconds(): Promise<number> {
  const [total = ''] = (await readFile('/proc/stat', 'utf8')).split('\n')
  // user, nice, system; then idle and iowait, which are not work; then irq, softirq, steal.
  const [user = 0, nice = 0, system = 0, , , ...interrupts] = total.split(/ +/).slice(1, 9).map(Number)
  return (user + nice + system + interrupts.reduce((sum, ticks) => sum + ticks, 0)) / ticksPerSecond
}

/** Waits until at most this many cores are busy, averaged over three seconds. */
export async function waitForIdleMachine(coresAtMost: number): Promise<void> {
  if (coresAtMost >= availableParallelism()) return
  for (const deadline = Date.now() + 30 * 60_000; Date.now() < deadline; ) {
    const before = await machineCpuSeconds()
    await sleep(3000)
    if ((await machineCpuSeconds()) - before <= 3 * coresAtMost) return
  }
  throw new Error('The machine does not become idle; try again later.')
}
