import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gatherPackages } from './gathered.ts'
import { buildServer, builtProgram, isServerStale } from './server-build.ts'

const root = path.resolve(import.meta.dirname, '..')

const withUnwatchedPromises = `--import=${import.meta.resolve('./unwatched-promises.ts')}`

if (isServerStale()) await buildServer()

/**
 * Every process of a run loads the same few hundred modules. What was compiled once is kept, which takes a third off
 * the start of each; in the working copy, because others can write to the usual place, and what lies there is executed.
 */
export const environment = {
  NODE_COMPILE_CACHE: path.join(root, 'node_modules/.cache/compiled'),
  ...process.env,
  NODE_OPTIONS: [process.env['NODE_OPTIONS'], await gatherPackages(), withUnwatchedPromises].join(' ').trim(),
  // Processes that tests start are what operators start.
  POSTERN_TEST_PROGRAM: builtProgram,
}

/** A process that is killed, as many are, leaves nothing of what it compiled. One that ends does it for all. */
function compile(): void {
  for (const program of ['server/src/testing/api.ts', 'server/dist/composers.js', 'server/dist/examiners.js'])
    spawnSync(process.execPath, ['--eval', `import(${JSON.stringify(path.join(root, program))})`], {
      stdio: 'inherit',
      env: environment,
    })
  // It ends when it has found no configuration.
  spawnSync(process.execPath, [builtProgram, 'all'], {
    env: { NODE_COMPILE_CACHE: environment.NODE_COMPILE_CACHE },
  })
}

export interface TestRun {
  files: string[]
  atOnce: number
  timeoutMs: number
}

/**
 * Node's own test runner, on a PostgreSQL of its own, for each of some runs at the same time: what the first says is shown
 * while it goes on, and then that of the others. Ends this process with an exit code that is theirs.
 */
export async function runTests(...runs: [TestRun, ...TestRun[]]): Promise<void> {
  compile()
  // Whoever interrupts this interrupts the runners too, and they have something to clear away first.
  process.on('SIGINT', () => {})
  const begun = runs.map((run, place) => {
    const runner = start(run, place === 0 ? 'inherit' : 'pipe')
    return { ended: codeOf(runner), said: runner.stdout && buffer(runner.stdout) }
  })
  for (const { ended, said } of begun) {
    if (said) process.stdout.write(await said)
    if ((await ended) !== 0) process.exitCode = 1
  }
}

function start({ files, atOnce, timeoutMs }: TestRun, output: 'inherit' | 'pipe'): ChildProcess {
  return spawn(
    process.execPath,
    [
      '--test',
      `--test-concurrency=${atOnce}`,
      `--test-timeout=${timeoutMs}`,
      '--test-global-setup=server/src/testing/global-setup.ts',
      ...files,
    ],
    { stdio: ['inherit', output, 'inherit'], cwd: root, env: environment },
  )
}

const codeOf = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => child.once('close', resolve))
