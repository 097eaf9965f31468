import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cleanUp } from './cleanup.ts'
import { killOnExit } from './kill-on-exit.ts'
import { newPartLog } from './part-logs.ts'

/** A separate `postern` process, run as an operator runs it. */
export interface PosternProcess {
  /** The URL of its HTTP server; empty without one. */
  url: string
  lines: string[]
  /** Sends SIGKILL, which simulates a power failure. */
  kill(): void
  /** Sends SIGTERM and waits for the exit. */
  stop(): Promise<void>
  exited: Promise<unknown>
}

/** The program built for the whole run (scripts/run-tests.ts), otherwise the source. */
export const program =
  process.env['POSTERN_TEST_PROGRAM'] ?? fileURLToPath(new URL('../../bin/postern.js', import.meta.url))

/** A minimal environment without the tests' variables. */
export const bareEnvironment: Record<string, string> = {
  PATH: process.env['PATH'] ?? '',
  // Shared by the whole run (scripts/run-tests.ts): reduces the start-up time to a third.
  ...(process.env['NODE_COMPILE_CACHE'] && { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }),
}

export interface Outcome {
  status: number
  stdout: string
  stderr: string
}

/** Runs a command to completion and returns its exit status and output. */
export const callPostern = (env: Record<string, string>, ...args: string[]): Promise<Outcome> =>
  new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { env }, (error, stdout, stderr) => {
      resolve({ status: error ? Number(error.code) : 0, stdout, stderr })
    })
  })

/** Runs a command that must succeed and returns its standard output. */
export async function runPostern(env: Record<string, string>, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [program, ...args], { env })).stdout
}

/** Starts a long-running command and waits until it has logged all of these messages. */
export async function startPostern(
  command: string,
  env: Record<string, string>,
  messages: string[],
): Promise<PosternProcess> {
  const child = spawn(process.execPath, [program, command], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  killOnExit(child)
  cleanUp(async () => void child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const lines: string[] = []
  const log = newPartLog(`postern-${command}`)
  const awaited = new Set(messages)
  const url = await new Promise<string>((resolve, reject) => {
    let served = ''
    void exited.then(() => reject(new Error(`postern ${command} ended: ${lines.join('\n')}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line)
      log.append(`${line}\n`)
      const { msg, addresses } = JSON.parse(line)
      if (msg === 'serving') served = `http://127.0.0.1:${addresses[0].port}`
      awaited.delete(msg)
      if (awaited.size === 0) resolve(served)
    })
  })
  return { url, lines, kill: () => child.kill('SIGKILL'), stop: () => stop(child, exited), exited }
}

async function stop(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  child.kill('SIGTERM')
  await exited
}

/** Starts `postern all` and waits until it is ready. */
export const startPosternAll = (env: Record<string, string>): Promise<PosternProcess> =>
  startPostern('all', env, ['serving', 'working'])
