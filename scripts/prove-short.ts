import { environment } from './run-tests.ts'
import { sideBySide } from './side-by-side.ts'

/**
 * `npm run prove:short`: the short form of every fault run (bench/README.md). They wait for most of their time, so a few
 * run at once; the longest begin. What each says is shown when it ends; any failure fails.
 */
const forms = [
  'prove:mta --faults 3 --longest-stop-ms 1000 --listener-down 5 --hasty',
  // Beside others there is no saying how soon it is back; that it is, there is.
  'prove:disk --rounds 1 --full-for-ms 3000 --back-within-ms 120000 --programs 3 --hasty',
  'prove:kills --kills 6',
  'prove:lines --phase-ms 3000 --ratio-at-most 4 --hasty',
  'prove:receivers --phase-ms 3000 --ratio-at-most 10 --hasty',
  'prove:points --variants ^one.mail --sample 3',
  'prove:clock --seconds 8',
  'prove:database --kills 3 --hasty',
]
/** By itself: it measures how long a claim takes. */
const last = ['prove:snapshot --seconds 10 --rate 300 --claim-p99-ms 200']

function prove(some: string[], atOnce: number): Promise<string[]> {
  const steps = some.map((title) => {
    const [run = '', ...args] = title.split(' ')
    return { title, command: 'npm', args: ['run', '--silent', run, '--', ...args] }
  })
  return sideBySide(steps, { atOnce, env: environment })
}

const failed = [...(await prove(forms, 4)), ...(await prove(last, 1))]
process.stdout.write(failed.length === 0 ? '\nAll held.\n' : `\nFailed:\n${failed.join('\n')}\n`)
process.exitCode = failed.length === 0 ? 0 : 1
