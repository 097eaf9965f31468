import { runTests } from './run-tests.ts'

/** `npm test [-- file …]`: runs the suite, or the specified files. */
const files = process.argv.slice(2)
const all = [
  'server/src/**/*.test.ts',
  'scripts/**/*.test.ts',
  'proofs/**/*.test.ts',
  'console/src/**/*.test.ts',
  'site/**/*.test.ts',
]
await runTests({
  files: files.length > 0 ? files : all,
  // Test files spend more time waiting for the database than computing. With split databases, concurrent runs would
  // wait for each other's cells.
  atOnce: process.env['POSTERN_TEST_SPLIT'] === undefined ? 4 : 1,
  timeoutMs: Number(process.env['POSTERN_TEST_TIMEOUT_MS'] ?? 900_000),
})
