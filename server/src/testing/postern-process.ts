import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cleanUp } from './cleanup.ts'

/** A `postern` of its own, as an operator runs it. */
export interface PosternProcess {
  url: string
  lines: string[]
  /** At once and without a word, as a power cut does it. */
  kill(): void
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
  await promisify(execFile)(process.execPath, [program, 'version'], { env })
  return env
}

/** `postern all`, once it serves and works. */
export async function startPosternAll(env: Record<string, string>): Promise<PosternProcess> {
  const child = spawn(process.execPath, [program, 'all'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  cleanUp(async () => void child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const lines: string[] = []
  const url = await new Promise<string>((resolve, reject) => {
    let served = ''
    void exited.then(() => reject(new Error(`postern ended: ${lines.join('\n')}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line)
      const { msg, addresses } = JSON.parse(line)
      if (msg === 'serving') served = `http://127.0.0.1:${addresses[0].port}`
      if (msg === 'working') resolve(served)
    })
  })
  return { url, lines, kill: () => child.kill('SIGKILL'), exited }
}
