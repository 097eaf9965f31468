import { globSync } from 'node:fs'
import path from 'node:path'
import { buildConsole, isConsoleStale } from './console-build.ts'
import { runTests } from './run-tests.ts'

/** `npm run e2e [-- 03 console/01 console …]`: all scenarios, or those with these numbers; `console` is all of the console's. */
const root = path.resolve(import.meta.dirname, '..')
const numbers = process.argv.slice(2)
const patternOf = (number: string) =>
  number === 'console' ? 'e2e/console/*.test.ts' : `e2e/${number}-*.test.ts`
const wanted = numbers.length > 0 ? numbers.map(patternOf) : ['e2e/**/*.test.ts']
const files = wanted.flatMap((pattern) => globSync(pattern, { cwd: root })).sort()
if (files.length === 0) {
  process.stderr.write(`No scenario is called ${numbers.join(' or ')}.\n`)
  process.exit(2)
}
if (isConsoleStale()) await buildConsole()
// Each has half a dozen processes of its own, which wait for most of their time.
runTests(files, { atOnce: 3, timeoutMs: 120_000 })
