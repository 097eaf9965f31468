import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { rolldown } from 'rolldown'
import { buildServer, builtProgram, isServerStale } from '../scripts/server-build.ts'
import { steadyPort } from '../server/src/testing/peers/steady-port.ts'
import { circumstances, spread, table } from './figures.ts'
import { startPostern } from './postern.ts'
import { printRatio } from './result.ts'

/**
 * `npm run bench:idle`: the memory of one idle `postern api`, and the time from its start to its first response,
 * compared with a bare Fastify server with the same plugins in the same run. bench/README.md explains the figures.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    'idle-seconds': { type: 'string', default: '15' },
  },
})
const rounds = Number(options.rounds)
const idleMs = 1000 * Number(options['idle-seconds'])
const goal = { atMost: 1.5 }
/** Long enough for a busy machine. */
const readyMs = 180_000
const pollMs = 5

interface Idle {
  startMs: number
  memoryMiB: number
}

interface Program {
  pid: number
  stop(): Promise<void>
}

const say = (text: string): void => void process.stdout.write(`${text}\n`)

if (isServerStale()) await buildServer()
const postern = await startPostern({ program: builtProgram })
try {
  const bareProgram = await bundleFastify(postern.directory)
  const measureApi = () =>
    measure((port) => postern.start('api', { environment: { POSTERN_HTTP_PORT: String(port) } }))
  const measureBare = () => measure((port) => startFastify(bareProgram, port))
  // Fills the compile caches, which are written when a process ends.
  await measureApi()
  await measureBare()
  const turns: { api: Idle; bare: Idle }[] = []
  while (turns.length < rounds) {
    const turn = { api: await measureApi(), bare: await measureBare() }
    turns.push(turn)
    say(`API ${describe(turn.api)}; bare Fastify ${describe(turn.bare)}`)
  }
  const of = (side: 'api' | 'bare', what: keyof Idle): number[] => turns.map((turn) => turn[side][what])
  const ratios = (what: keyof Idle): number[] => turns.map(({ api, bare }) => api[what] / bare[what])
  const row = (title: string, what: keyof Idle): string[] => [
    ...['S9', title, spread(of('api', what)), spread(of('bare', what)), spread(ratios(what), 2)],
    `≤ ${goal.atMost}`,
  ]
  say(`\n${await circumstances(postern.superuser)};`)
  say(`${rounds} rounds; medians (min–max); memory (RSS) after ${idleMs / 1000} s without requests.\n`)
  say(
    table(
      ['', 'what', 'API', 'bare Fastify', 'ratio', 'goal'],
      [row('start to first response, ms', 'startMs'), row('memory, MiB', 'memoryMiB')],
    ),
  )
  printRatio('S9', `start ${spread(of('api', 'startMs'))} ms, ratio to bare Fastify`, ratios('startMs'), goal)
  const memory = `memory ${spread(of('api', 'memoryMiB'))} MiB, ratio to bare Fastify`
  printRatio('S9', memory, ratios('memoryMiB'), goal)
} finally {
  await postern.stop()
}

function describe({ startMs, memoryMiB }: Idle): string {
  return `${startMs.toFixed(0)} ms, ${memoryMiB.toFixed(0)} MiB`
}

async function measure(start: (port: number) => Promise<Program>): Promise<Idle> {
  const port = await steadyPort()
  const startedAt = performance.now()
  const [startMs, program] = await Promise.all([untilAnswered(port, startedAt), start(port)])
  await sleep(idleMs)
  const memoryMiB = await residentMiB(program.pid)
  await program.stop()
  return { startMs, memoryMiB }
}

async function untilAnswered(port: number, startedAt: number): Promise<number> {
  while (performance.now() - startedAt < readyMs) {
    const response = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined)
    await response?.arrayBuffer()
    if (response?.status === 200) return performance.now() - startedAt
    await sleep(pollMs)
  }
  throw new Error(`There was no response for ${readyMs} ms.`)
}

async function residentMiB(pid: number): Promise<number> {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}

/** Bundled like Postern, because a bundle starts faster. */
async function bundleFastify(directory: string): Promise<string> {
  const input = path.resolve(import.meta.dirname, '../server/src/testing/peers/bare-fastify-process.ts')
  const bundle = await rolldown({ input, platform: 'node', logLevel: 'warn' })
  const file = path.join(directory, 'fastify.mjs')
  const banner = `import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);`
  await bundle.write({ file, format: 'esm', banner })
  await bundle.close()
  return file
}

async function startFastify(program: string, port: number): Promise<Program> {
  const child = spawn(process.execPath, [program, String(port)], {
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: `${program}-compiled` },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await once(child, 'spawn')
  return {
    pid: child.pid ?? 0,
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}
