import { type ExecFileException, execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** The two load generators. Both are written in C, and use little CPU time compared with the programs they measure. */
export interface Load {
  seconds: number
  connections: number
}

export interface LoadResult {
  succeeded: number
  failed: number
  /** Successful requests only. */
  perSecond: number
  /** pgbench does not report the two percentiles. */
  p50Ms?: number
  p99Ms?: number
}

/** Runs a Lua script whose `done` prints `result <answers> <failed> <microseconds> <p50> <p99>`. */
export async function runWrk(
  { seconds, connections }: Load,
  url: string,
  script: string,
  args: string[],
): Promise<LoadResult> {
  const output = await outputOf('wrk', [
    '--threads=1',
    `--connections=${connections}`,
    `--duration=${seconds}s`,
    '--timeout=30s',
    `--script=${script}`,
    url,
    '--',
    ...args,
  ])
  const found = /^result (\d+) (\d+) (\d+) (\d+) (\d+)$/m.exec(output)?.slice(1).map(Number)
  const [answers = 0, failed = 0, microseconds = 1, p50 = 0, p99 = 0] = found ?? []
  if (!found) throw new Error(`unexpected output of wrk:\n${output}`)
  const succeeded = answers - failed
  return {
    succeeded,
    failed,
    perSecond: succeeded / (microseconds / 1e6),
    p50Ms: p50 / 1000,
    p99Ms: p99 / 1000,
  }
}

export async function runPgbench(
  { seconds, connections }: Load,
  databaseUrl: string,
  sessionOptions: string,
  script: { file: string; protocol: string; variables: Record<string, string | number> },
): Promise<LoadResult> {
  const args = [
    '--no-vacuum',
    `--protocol=${script.protocol}`,
    `--client=${connections}`,
    '--jobs=1',
    `--time=${seconds}`,
    `--file=${script.file}`,
    ...Object.entries(script.variables).map(([name, value]) => `--define=${name}=${value}`),
    databaseUrl,
  ]
  const output = await outputOf('pgbench', args, { ...process.env, PGOPTIONS: sessionOptions })
  const number = (pattern: RegExp): number => Number(pattern.exec(output)?.[1] ?? Number.NaN)
  const result = {
    succeeded: number(/^number of transactions actually processed: (\d+)/m),
    failed: number(/^number of failed transactions: (\d+)/m),
    perSecond: number(/^tps = ([\d.]+)/m),
  }
  if (Object.values(result).some(Number.isNaN)) {
    throw new Error(`unexpected output of pgbench:\n${output}`)
  }
  return result
}

const exec = promisify(execFile)

async function outputOf(program: string, args: string[], env = process.env): Promise<string> {
  try {
    return (await exec(program, args, { env })).stdout
  } catch (error) {
    const { code, stderr, message } = error as ExecFileException & { stderr?: string }
    if (code === 'ENOENT')
      throw new Error(`${program} is not installed; bench/README.md lists the requirements.`)
    // Every client reports the same error; the first one is enough.
    throw new Error(`${program} failed: ${(stderr || message).slice(0, 1000)}`)
  }
}
