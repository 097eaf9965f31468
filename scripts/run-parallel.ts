import { spawn } from 'node:child_process'
import path from 'node:path'

export interface Step {
  title: string
  command: string
  args: string[]
  env?: NodeJS.ProcessEnv
}

export interface Failed {
  title: string
  said: string
}

/** The time a step has after SIGTERM to clean up and save its logs. */
const endMs = 60_000

const root = path.resolve(import.meta.dirname, '..')

/**
 * Runs all steps, several at a time, and prints the output of each when it ends. Returns the failed steps with their
 * output. A step that takes longer than `timeoutMs` is terminated and fails.
 */
export async function runParallel(
  steps: Step[],
  { atOnce, timeoutMs }: { atOnce: number; timeoutMs: number },
): Promise<Failed[]> {
  const failed: Failed[] = []
  const waiting = [...steps]
  const running = new Set<Running>()
  const interrupt = (): void => {
    waiting.length = 0
    for (const { signal } of running) signal('SIGINT')
  }
  process.once('SIGINT', interrupt)
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let step = waiting.shift(); step; step = waiting.shift()) {
        const startedAt = performance.now()
        const started = start(step, timeoutMs)
        running.add(started)
        const { code, said } = await started.ended
        running.delete(started)
        const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
        process.stdout.write(`\n── ${step.title} (${seconds} s)\n${said}`)
        if (code !== 0) failed.push({ title: step.title, said: said.toString() })
      }
    }),
  )
  process.off('SIGINT', interrupt)
  return failed
}

interface Running {
  signal(signal: NodeJS.Signals): void
  ended: Promise<{ code: number | null; said: Buffer }>
}

function start({ command, args, env = process.env }: Step, timeoutMs: number): Running {
  // In its own process group: npm starts a shell, which starts the program, and all of them must be terminated.
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: root, env, detached: true })
  const said: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => said.push(chunk))
  const signal = (name: NodeJS.Signals): void => {
    if (child.pid) process.kill(-child.pid, name)
  }
  const end = (name: NodeJS.Signals) => () => {
    said.push(Buffer.from(`\nTimed out; sending ${name}.\n`))
    signal(name)
  }
  const timers = [setTimeout(end('SIGTERM'), timeoutMs), setTimeout(end('SIGKILL'), timeoutMs + endMs)]
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  }).finally(() => timers.forEach(clearTimeout))
  return { signal, ended: ended.then((code) => ({ code, said: Buffer.concat(said) })) }
}
