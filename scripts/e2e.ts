import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import path from 'node:path'

/** `npm run e2e [-- 03 …]`: all scenarios, or those with these numbers, on a PostgreSQL of their own. */
const root = path.resolve(import.meta.dirname, '..')
const numbers = process.argv.slice(2)
const wanted = numbers.length > 0 ? numbers.map((number) => `e2e/${number}-*.test.ts`) : ['e2e/*.test.ts']
const files = wanted.flatMap((pattern) => globSync(pattern, { cwd: root })).sort()
if (files.length === 0) {
  process.stderr.write(`No scenario is called ${numbers.join(' or ')}.\n`)
  process.exit(2)
}
const { status } = spawnSync(
  process.execPath,
  [
    '--test',
    // Each has half a dozen processes of its own.
    '--test-concurrency=1',
    '--test-timeout=120000',
    '--test-global-setup=server/src/testing/global-setup.ts',
    ...files,
  ],
  { stdio: 'inherit', cwd: root },
)
process.exitCode = status ?? 1
