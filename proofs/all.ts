import path from 'node:path'
import { parseArgs } from 'node:util'
import { rows } from './all/rows.ts'
import { type AllOptions, listRows, runAll } from './all/run-all.ts'

/**
 * `npm run prove:all`: runs the full form of every row, one after the other, and writes the results to
 * bench/RESULTS.md. After an interruption, the next run continues with the remaining rows. proofs/README.md
 * describes it.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    list: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
    seed: { type: 'string' },
  },
})

const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort())

const options: AllOptions = {
  root: path.resolve(import.meta.dirname, '..'),
  rows,
  only: values.only?.split(','),
  again: values.again,
  seed: Number(values.seed ?? Date.now() % 1_000_000_000),
  stopping: stopping.signal,
  say: (text) => void process.stdout.write(`${text}\n`),
}

if (values.list) await listRows(options)
else {
  const results = await runAll(options)
  const count = (verdict: string): number => results.filter((result) => result.verdict === verdict).length
  const scriptless = rows.filter(({ commands }) => commands.length === 0).map(({ id }) => id)
  options.say(
    `\nreached ${count('reached')}, missed ${count('missed')}, failed ${count('failed')}` +
      (scriptless.length > 0 ? `; no script: ${scriptless.join(', ')}` : ''),
  )
  if (stopping.signal.aborted) options.say('Stopped. The next run continues with the remaining rows.')
  if (count('failed') > 0 || stopping.signal.aborted) process.exitCode = 1
}
