import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { clockProperties, findComparisons, readSource } from './clock/comparisons.ts'

/**
 * No check in CI asserts a duration, because on a busy machine such an assertion can fail without a defect. This check
 * rejects comparisons of two clock readings in tests and their support code (clock/comparisons.ts), and options that
 * limit a duration, a ratio or a percentile in the short fault runs.
 */
const root = path.resolve(import.meta.dirname, '..')

/** Exceptions, each with its reason. */
const exceptions: Record<string, string> = {
  'server/src/testing/harness/waiting.ts': 'the one helper that waits with a limit',
  'server/src/testing/harness/parser-timing.ts':
    'measures parsers, and asserts only in npm run prove:parsers',
}

const patterns = [
  '{server,console}/src/**/*.test.ts',
  'server/src/testing/**/*.ts',
  'e2e/**/*.ts',
  'bench/**/*.test.ts',
  'proofs/**/*.test.ts',
  'scripts/**/*.test.ts',
]
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
const files = [...new Set(patterns.flatMap((pattern) => globSync(pattern, { cwd: root })))]
  .filter((file) => exceptions[file] === undefined)
  .map((file) => ({ file, ...readSource(read(file)) }))
const properties = clockProperties(files)
const problems = files.flatMap(({ file, ...source }) =>
  findComparisons(source, properties).map(
    ({ line, text }) =>
      `${file}:${line}: compares two clock readings: ${text}\n  Wait with eventually() of server/src/testing/harness/waiting.ts, count, or move the test's clock; measure speed in bench/.`,
  ),
)

const bounding = /--\S*(at-most|within|p\d\d|percentile|ratio)\S*/g
const shortForms = 'proofs/short.ts'
for (const [option] of read(shortForms).matchAll(bounding))
  problems.push(
    `${shortForms}: ${option} bounds a time or a ratio; a short form's exit code depends on counts alone`,
  )

process.stdout.write(`${files.length} test files checked.\n`)
for (const file of Object.keys(exceptions))
  if (!globSync(file, { cwd: root }).length)
    problems.push(`${file} is listed as an exception but does not exist`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
