import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { printResult } from '../bench/result.ts'
import { bundlePackages } from './bundled-packages.ts'
import { prepareKeys } from './prepared-keys.ts'
import { buildServer, builtProgram, isServerStale } from './server-build.ts'
import { makeResults, type Results, reportFailures, seed, slowestFiles } from './test-results.ts'

const root = path.resolve(import.meta.dirname, '..')

const withUnwatchedPromises = `--import=${import.meta.resolve('./untracked-promises.ts')}`

if (isServerStale()) await buildServer()
const keys = await prepareKeys()

/**
 * Every process in a run loads the same few hundred modules. A compile cache reduces the start-up time by a third. The
 * cache is in the working copy instead of the default location, because its contents are executed and other users can
 * write to the default location.
 */
export const environment = {
  NODE_COMPILE_CACHE: path.join(root, 'node_modules/.cache/compiled'),
  ...process.env,
  ...keys.variables,
  NODE_OPTIONS: [process.env['NODE_OPTIONS'], await bundlePackages(), keys.option, withUnwatchedPromises]
    .join(' ')
    .trim(),
  // Tests start the same program as operators do.
  POSTERN_TEST_PROGRAM: builtProgram,
  POSTERN_TEST_SEED: String(seed),
}

/**
 * Fills the compile cache by running processes that exit normally. Tests often kill their processes, and a killed
 * process does not write the cache.
 */
function compile(): void {
  for (const program of [
    'server/src/testing/harness/api.ts',
    'server/dist/composer-threads.js',
    'server/dist/analysis-threads.js',
  ])
    spawnSync(process.execPath, ['--eval', `import(${JSON.stringify(path.join(root, program))})`], {
      stdio: 'inherit',
      env: environment,
    })
  // This process exits because its configuration is missing.
  spawnSync(process.execPath, [builtProgram, 'all'], {
    env: { NODE_COMPILE_CACHE: environment.NODE_COMPILE_CACHE },
  })
}

export interface TestRun {
  files: string[]
  atOnce: number
  timeoutMs: number
}

/** If more files than this fail, the failures probably share a cause, and rerunning the files is pointless. */
const repeatedAtMost = 10

/**
 * Runs Node's test runner on a private PostgreSQL, with several runs in parallel. The output of the first run is
 * streamed; then the output of the others is printed. Failed files are repeated once, one at a time: a test that then
 * passes is reported as flaky, but the exit code is still 1.
 */
export async function runTests(...runs: [TestRun, ...TestRun[]]): Promise<void> {
  compile()
  // The runners also receive the interrupt and must clean up first.
  process.on('SIGINT', () => {})
  const first = await runAll(runs)
  process.stdout.write(slowestFiles(first.records))
  printResult({ verdict: first.isGreen ? 'reached' : 'failed', figures: figuresOf(first), seed })
  if (first.isGreen) return first.remove()
  process.exitCode = 1
  const failed = first.failedFiles()
  const repeated = failed.length <= repeatedAtMost ? failed : []
  const timeoutMs = Math.max(...runs.map((run) => run.timeoutMs))
  if (repeated.length > 0) process.stdout.write('\nRepeating the failed files.\n')
  const again = repeated.length > 0 ? await runAll([{ files: repeated, atOnce: 1, timeoutMs }]) : undefined
  reportFailures(first, again)
}

/** The number of tests, and the figures that the tests printed. */
function figuresOf(results: Results): string {
  const count = (type: 'file' | 'pass'): number =>
    results.records.filter((record) => record.type === type).length
  const totals = `test files ${count('file')}, passed ${count('pass')}, failed ${results.failures().length}`
  const printed = results.records.flatMap((record) => (record.type === 'figures' ? [record.text] : []))
  return [totals, ...printed].join('; ')
}

async function runAll(runs: readonly TestRun[]): Promise<Results> {
  const results = makeResults()
  const started = runs.map((run, index) => {
    const runner = start(run, index === 0 ? 'inherit' : 'pipe', results)
    return { ended: codeOf(runner), output: runner.stdout && buffer(runner.stdout) }
  })
  for (const { ended, output } of started) {
    if (output) process.stdout.write(await output)
    results.noteExit(await ended)
  }
  await results.read()
  return results
}

function start(
  { files, atOnce, timeoutMs }: TestRun,
  output: 'inherit' | 'pipe',
  results: Results,
): ChildProcess {
  return spawn(
    process.execPath,
    [
      '--test',
      `--test-concurrency=${atOnce}`,
      `--test-timeout=${timeoutMs}`,
      '--test-global-setup=server/src/testing/harness/global-setup.ts',
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      '--test-reporter=./scripts/test-recorder.ts',
      `--test-reporter-destination=${results.newRecordFile()}`,
      ...files,
    ],
    {
      stdio: ['inherit', output, 'inherit'],
      cwd: root,
      env: { ...environment, POSTERN_TEST_LOGS: results.logs },
    },
  )
}

const codeOf = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => child.once('close', resolve))
