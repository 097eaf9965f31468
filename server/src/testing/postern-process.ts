import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cleanUp } from './cleanup.ts'
import { endWithUs } from './end-with-us.ts'

/** A `postern` of its own, as an operator runs it. */
export interface PosternProcess {
  /** Where it serves HTTP; empty if it does not. */
  url: string
  lines: string[]
  /** At once and without a word, as a power cut does it. */
  kill(): void
  /** As an operator stops it. */
  stop(): Promise<void>
  exited: Promise<unknown>
}

const program = fileURLToPath(new URL('../bin/postern.ts', import.meta.url))

/**
 * Settings with which a process starts in about half the time. A process that is killed leaves no compiled code for the
 * next, so one that ends by itself does.
 */
export async function quickStart(): Promise<Record<string, string>> {
  const cache = await mkdtemp(path.join(tmpdir(), 'postern-compiled-'))
  cleanUp(() => rm(cache, { recursive: true, force: true }))
  const env = { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: cache }
  await runPostern(env, 'version')
  return env
}

/** A command that does one thing and ends; what it printed. */
export async function runPostern(env: Record<string, string>, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [program, ...args], { env })).stdout
}

/** A command that goes on, once it has logged all of these messages. */
export async function startPostern(
  command: string,
  env: Record<string, string>,
  messages: string[],
): Promise<PosternProcess> {
  const child = spawn(process.execPath, [program, command], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  endWithUs(child)
  cleanUp(async () => void child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const lines: string[] = []
  const awaited = new Set(messages)
  const url = await new Promise<string>((resolve, reject) => {
    let served = ''
    void exited.then(() => reject(new Error(`postern ${command} ended: ${lines.join('\n')}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line)
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

/** `postern all`, once it serves and works. */
export const startPosternAll = (env: Record<string, string>): Promise<PosternProcess> =>
  startPostern('all', env, ['serving', 'working'])
