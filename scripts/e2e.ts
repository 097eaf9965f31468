import { globSync } from 'node:fs'
import path from 'node:path'
import { buildConsole, isConsoleStale } from './console-build.ts'
import { buildSite, isSiteStale } from './site-build.ts'

/**
 * `npm run e2e [-- 03 console/01 console …]`: runs all scenarios, or those with these numbers. `console`, `app` and `docs`
 * select all scenarios of the administrators' console, the customers' app or the documentation.
 */
const root = path.resolve(import.meta.dirname, '..')
const numbers = process.argv.slice(2)
const patternOf = (number: string) =>
  ['console', 'app', 'docs'].includes(number) ? `e2e/${number}/*.test.ts` : `e2e/${number}-*.test.ts`
const wanted = numbers.length > 0 ? numbers.map(patternOf) : ['e2e/**/*.test.ts']
const files = wanted.flatMap((pattern) => globSync(pattern, { cwd: root })).sort()
if (files.length === 0) {
  process.stderr.write(`There is no scenario ${numbers.join(' or ')}.\n`)
  process.exit(2)
}
if (isConsoleStale()) await buildConsole()
if (files.some((file) => file.startsWith('e2e/docs/')) && isSiteStale()) await buildSite()
// Loaded afterwards, because it builds the server, which contains the console and the documentation.
const { runTests } = await import('./run-tests.ts')
// Each scenario starts about six processes. Mail scenarios mostly wait, and browser scenarios mostly compute, so both
// kinds run concurrently. A browser scenario uses less than one core: three at a time keep two cores busy.
const isOfBrowser = (file: string): boolean => /^e2e\/(console|app|docs)\//.test(file)
const [first, ...others] = [
  { files: files.filter((file) => !isOfBrowser(file)), atOnce: 2, timeoutMs: 900_000 },
  { files: files.filter(isOfBrowser), atOnce: 3, timeoutMs: 900_000 },
].filter((run) => run.files.length > 0)
if (first) await runTests(first, ...others)
