import { spawnSync } from 'node:child_process'
import path from 'node:path'

/** `npm test [-- file …]`: the suite, or the files named, on a PostgreSQL of its own. */
const root = path.resolve(import.meta.dirname, '..')
const files = process.argv.slice(2)
const { status } = spawnSync(
  process.execPath,
  [
    '--test',
    // Files wait for the database more than they compute.
    '--test-concurrency=4',
    `--test-timeout=${process.env['POSTERN_TEST_TIMEOUT_MS'] ?? 900_000}`,
    '--test-global-setup=server/src/testing/global-setup.ts',
    ...(files.length > 0 ? files : ['server/src/**/*.test.ts', 'scripts/**/*.test.ts', 'bench/**/*.test.ts']),
  ],
  { stdio: 'inherit', cwd: root },
)
process.exitCode = status ?? 1
