import { spawn } from 'node:child_process'
import { environment } from './run-tests.ts'

/**
 * `npm run prove:short`: the short form of every fault run (bench/README.md). They wait for most of their time, so a few
 * run at once; the longest begin. What each says is shown when it ends; any failure fails.
 */
const forms: [run: string, ...args: string[]][] = [
  ['prove:mta', '--faults', '3', '--longest-stop-ms', '2000', '--listener-down', '10', '--hasty'],
  ['prove:disk', '--rounds', '1', '--full-for-ms', '4000', '--hasty'],
  ['prove:kills', '--kills', '8'],
  ['prove:lines', '--phase-ms', '5000', '--ratio-at-most', '4', '--hasty'],
  ['prove:receivers', '--phase-ms', '4000', '--ratio-at-most', '10', '--hasty'],
  ['prove:points', '--variants', '^one mail', '--sample', '3'],
  ['prove:clock', '--seconds', '10'],
  ['prove:database', '--kills', '3', '--hasty'],
]
/** By itself: it measures how long a claim takes. */
const last: typeof forms = [['prove:snapshot', '--seconds', '15', '--rate', '300', '--claim-p99-ms', '200']]
const atOnce = 4

const failed: string[] = []

async function prove([run, ...args]: (typeof forms)[number]): Promise<void> {
  const startedAt = performance.now()
  const child = spawn('npm', ['run', '--silent', run, '--', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment,
  })
  const said: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => said.push(chunk))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  process.stdout.write(`\n── ${run} ${args.join(' ')} (${seconds} s)\n${Buffer.concat(said)}`)
  if (code !== 0) failed.push(run)
}

const waiting = forms.values()
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    for (const form of waiting) await prove(form)
  }),
)
for (const form of last) await prove(form)
process.stdout.write(failed.length === 0 ? '\nAll held.\n' : `\nFailed: ${failed.join(', ')}\n`)
process.exitCode = failed.length === 0 ? 0 : 1
