import { runTests } from './run-tests.ts'

/** `npm test [-- file …]`: the suite, or the files named. */
const files = process.argv.slice(2)
const all = [
  'server/src/**/*.test.ts',
  'scripts/**/*.test.ts',
  'proofs/**/*.test.ts',
  'console/src/**/*.test.ts',
]
await runTests({
  files: files.length > 0 ? files : all,
  // Files wait for the database more than they compute. Split, they would wait for one another's cells.
  atOnce: process.env['POSTERN_TEST_SPLIT'] === undefined ? 4 : 1,
  timeoutMs: Number(process.env['POSTERN_TEST_TIMEOUT_MS'] ?? 900_000),
})
