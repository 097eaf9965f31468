import { globSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { runParallel } from '../scripts/run-parallel.ts'
import { environment } from '../scripts/run-tests.ts'
import { announce, indent, makeResults, seed } from '../scripts/test-results.ts'

/** The other runs make no random choices. */
const isSeeded = (form: string): boolean => !/^prove:(snapshot|neighbours)/.test(form)

/**
 * `npm run prove:short`: the short form of every fault run (proofs/README.md). Each prints durations, but fails only on
 * counts, because durations are meaningless on a busy machine. The runs mostly wait, so several run concurrently, the
 * longest first. The output of each is printed when it ends; any failure fails the command.
 */
const forms = [
  'prove:mta --faults 3 --longest-stop-ms 1000 --listener-down 5 --skip-waits',
  'prove:disk --rounds 1 --full-for-ms 3000 --programs 3 --skip-waits',
  'prove:kills --kills 6',
  'prove:network --phase-ms 3000 --skip-waits',
  'prove:receivers --phase-ms 3000 --skip-waits',
  'prove:crash-points --variants ^one.message --sample 3',
  'prove:clock --seconds 8',
  'prove:database --kills 3 --skip-waits',
  'prove:snapshot --seconds 10 --rate 300',
  'prove:neighbours --only c1,m8 --beside-only --rounds 1 --phase-ms 1000 --endpoints 200 --batch-mails 50 --large-mails 5',
].map((form) => `${form} --counts-only${isSeeded(form) ? ` --seed ${seed}` : ''}`)

/** Several times the duration of the longest run on a busy machine. */
const timeoutMs = 1_200_000

/** The last warnings and errors that each process of a run has logged. */
function troubleIn(folder: string): string {
  const isTrouble = /"level":"(warn|error|fatal)"|\b(ERROR|FATAL|PANIC):/
  return globSync('*.log', { cwd: folder })
    .map((file) => {
      const lines = readFileSync(path.join(folder, file), 'utf8').trimEnd().split('\n')
      return [...lines.filter((line) => isTrouble.test(line)).slice(-10), ...lines.slice(-3)]
        .map((line) => `${file}: ${line.slice(0, 600)}\n`)
        .join('')
    })
    .join('')
}

interface Form {
  title: string
  /** The folder for the logs of the run's processes. */
  logs: string
}

interface FailedForm extends Form {
  said: string
}

/** Returns the failed runs, with their logs. */
async function prove(titles: readonly string[], atOnce: number): Promise<FailedForm[]> {
  const { logs } = makeResults()
  const runs = titles.map((title) => ({ title, logs: path.join(logs, title.replace(/ .*/, '')) }))
  const steps = runs.map((run) => {
    const [script = '', ...args] = run.title.split(' ')
    const command = ['run', '--silent', script, '--', ...args]
    return {
      title: run.title,
      command: 'npm',
      args: command,
      env: { ...environment, POSTERN_TEST_LOGS: run.logs },
    }
  })
  const failed = await runParallel(steps, { atOnce, timeoutMs })
  const failedForms: FailedForm[] = []
  for (const run of runs) {
    const failure = failed.find(({ title }) => title === run.title)
    if (failure) {
      process.stdout.write(`\n── log of ${run.title}\n${troubleIn(run.logs)}`)
      failedForms.push({ ...run, said: failure.said })
    } else await rm(run.logs, { recursive: true, force: true })
  }
  return failedForms
}

const failed = await prove(forms, 4)
if (failed.length === 0) process.stdout.write('\nAll runs passed.\n')
else {
  process.exitCode = 1
  process.stdout.write('\nRepeating the failed runs.\n')
  const again = await prove(
    failed.map(({ title }) => title),
    1,
  )
  const stillFails = new Set(again.map(({ title }) => title))
  const blocks = failed.map(({ title, logs, said }) => {
    const state = stillFails.has(title) ? 'FAILED TWICE' : 'FLAKY, passed when repeated'
    const [script, ...args] = title.split(' ')
    const lastLines = said.trimEnd().split('\n').slice(-10)
    return `${state}: ${script}\n${indent(lastLines)}  repeat: npm run ${script} -- ${args.join(' ')}\n  logs:   ${logs}\n`
  })
  announce(blocks.join(''))
}
