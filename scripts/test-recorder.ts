import path from 'node:path'
import type { TestEvent } from 'node:test/reporters'

/**
 * A reporter for Node's test runner that writes one line of JSON per result, for run-tests.ts: the duration of each
 * file, the passed tests, the figures that tests print, and the failed tests. A suite that failed only because of one of
 * its tests is omitted.
 */
export type TestRecord =
  | { type: 'file'; file: string; ms: number }
  | { type: 'pass'; file: string }
  | { type: 'figures'; file: string; text: string }
  | { type: 'failure'; file: string; test: string; error: string }

/** The wrapper that Node's runner adds to the error of a test. */
type TestError = Partial<Error> & { failureType?: string }

const root = path.resolve(import.meta.dirname, '..')

export default async function* recordTests(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    // The runner's own totals have no file.
    if (type === 'test:diagnostic' && data.file !== undefined)
      yield line({ type: 'figures', file: path.relative(root, data.file), text: data.message })
    if (type !== 'test:complete' && type !== 'test:fail' && type !== 'test:pass') continue
    const file = path.relative(root, data.file ?? '')
    const isWholeFile = data.nesting === 0 && data.name === file
    if (type === 'test:complete' && isWholeFile)
      yield line({ type: 'file', file, ms: data.details.duration_ms })
    if (type === 'test:pass' && !isWholeFile && data.details.type !== 'suite')
      yield line({ type: 'pass', file })
    if (type !== 'test:fail') continue
    const { failureType, cause, message = '' } = data.details.error as TestError
    if (failureType === 'subtestsFailed') continue
    const error = cause instanceof Error ? cause.message : message
    yield line({ type: 'failure', file, test: isWholeFile ? 'the file itself' : data.name, error })
  }
}

const line = (record: TestRecord): string => `${JSON.stringify(record)}\n`
