import { globSync } from 'node:fs'
import path from 'node:path'
import { buildConsole, isConsoleStale } from './console-build.ts'
import { runTests } from './run-tests.ts'

/**
 * `npm run e2e [-- 03 console/01 console …]`: runs all scenarios, or those with these numbers. `console` selects all
 * console scenarios.
 */
const root = path.resolve(import.meta.dirname, '..')
const numbers = process.argv.slice(2)
const patternOf = (number: string) =>
  number === 'console' ? 'e2e/console/*.test.ts' : `e2e/${number}-*.test.ts`
const wanted = numbers.length > 0 ? numbers.map(patternOf) : ['e2e/**/*.test.ts']
const files = wanted.flatMap((pattern) => globSync(pattern, { cwd: root })).sort()
if (files.length === 0) {
  process.stderr.write(`There is no scenario ${numbers.join(' or ')}.\n`)
  process.exit(2)
}
if (isConsoleStale()) await buildConsole()
// Each scenario starts about six processes. Mail scenarios mostly wait, and browser scenarios mostly compute, so both
// kinds run concurrently.
const isOfConsole = (file: string): boolean => file.startsWith('e2e/console/')
const [first, ...others] = [files.filter((file) => !isOfConsole(file)), files.filter(isOfConsole)]
  .filter(({ length }) => length > 0)
  .map((some, _, { length }) => ({ files: some, atOnce: length > 1 ? 2 : 3, timeoutMs: 900_000 }))
if (first) await runTests(first, ...others)
