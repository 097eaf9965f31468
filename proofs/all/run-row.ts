import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import path from 'node:path'
import { type RowVerdict, type RunResult, readResults } from '../../bench/result.ts'
import type { RowResult } from './bookkeeping.ts'
import type { Command, Row } from './rows.ts'

export interface RowRun {
  root: string
  /** For the output of each row. */
  logs: string
  seed: number
  /** Ends the running command. */
  stopping: AbortSignal
}

/** Longer than the longest row. A stuck command must not hold up the others. */
const timeoutMs = 30 * 3_600_000
/** How long a command has to clean up. */
const endMs = 120_000
const figuresAtMost = 700

/** Runs the row's commands and returns its result, except for the commit. */
export async function runRow(row: Row, run: RowRun): Promise<Omit<RowResult, 'commit'>> {
  const startedAt = new Date()
  const machine = machineNow()
  const findings: Finding[] = []
  for (const command of row.commands) findings.push(read(row, await runCommand(row, command, run)))
  const isSeeded = row.commands.some(({ seed }) => seed !== 'none')
  return {
    id: row.id,
    verdict: worstOf(findings.map(({ verdict }) => verdict)),
    figures: findings.map(({ figures }) => figures).join('; '),
    seed: isSeeded ? run.seed : null,
    startedAt: startedAt.toISOString(),
    seconds: Math.round((Date.now() - startedAt.getTime()) / 1000),
    machine,
  }
}

function machineNow(): string {
  const load = loadavg()[0]?.toFixed(1)
  return `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), load average ${load} before`
}

interface Finding {
  verdict: RowVerdict
  figures: string
}

interface Ended {
  code: number | null
  output: string
}

/**
 * The verdict that the command printed. A command that printed none, or that printed `reached` but exited with an
 * error, has failed.
 */
function read({ id }: Row, { code, output }: Ended): Finding {
  const results = readResults(output).filter(({ row = id }) => row === id)
  if (results.length === 0) {
    const lastLine = output.trimEnd().split('\n').at(-1) ?? ''
    return { verdict: 'failed', figures: short(`no result, exit code ${code}: ${lastLine}`) }
  }
  const verdict = worstOf(results.map((result: RunResult) => result.verdict))
  const figures = short(results.map((result) => result.figures).join('; '))
  if (code !== 0 && verdict === 'reached')
    return { verdict: 'failed', figures: `${figures}; exit code ${code}` }
  return { verdict, figures }
}

const worstOf = (verdicts: readonly RowVerdict[]): RowVerdict =>
  (['failed', 'missed'] as const).find((verdict) => verdicts.includes(verdict)) ?? 'reached'

const short = (text: string): string =>
  text.length > figuresAtMost ? `${text.slice(0, figuresAtMost)}…` : text

export function commandLine({ script, args, seed: passed }: Command, seed: number): string[] {
  const all = [...args, ...(passed === 'option' ? ['--seed', String(seed)] : [])]
  return ['run', script, ...(all.length > 0 ? ['--', ...all] : [])]
}

async function runCommand(row: Row, command: Command, run: RowRun): Promise<Ended> {
  await mkdir(run.logs, { recursive: true })
  const args = commandLine(command, run.seed)
  const log = createWriteStream(path.join(run.logs, `${row.id}-${command.script.replace(':', '-')}.log`))
  log.write(`npm ${args.join(' ')}\n`)
  const seed = command.seed === 'environment' ? { POSTERN_TEST_SEED: String(run.seed) } : {}
  // In its own process group: npm starts a shell, which starts the program, and all of them must be terminated.
  const child = spawn('npm', args, {
    cwd: run.root,
    env: { ...process.env, ...command.environment, ...seed },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const end = (signal: NodeJS.Signals): void => {
    if (child.pid) process.kill(-child.pid, signal)
  }
  const stop = (): void => end('SIGTERM')
  run.stopping.addEventListener('abort', stop)
  const timers = [setTimeout(stop, timeoutMs), setTimeout(() => end('SIGKILL'), timeoutMs + endMs)]
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      log.write(chunk)
    })
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  timers.forEach(clearTimeout)
  run.stopping.removeEventListener('abort', stop)
  await new Promise<void>((resolve) => log.end(resolve))
  return { code, output: Buffer.concat(chunks).toString() }
}
