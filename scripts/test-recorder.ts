import path from 'node:path'
import type { TestEvent } from 'node:test/reporters'

/**
 * A reporter for Node's test runner that writes one line of JSON per result, for run-tests.ts: the duration of each
 * file, and the failed tests. A suite that failed only because of one of its tests is omitted.
 */
export type TestRecord =
  | { type: 'file'; file: string; ms: number }
  | { type: 'failure'; file: string; test: string; error: string }

/** The wrapper that Node's runner adds to the error of a test. */
type TestError = Partial<Error> & { failureType?: string }

const root = path.resolve(import.meta.dirname, '..')

export default async function* recordTests(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:complete' && type !== 'test:fail') continue
    const file = path.relative(root, data.file ?? '')
    const isWholeFile = data.nesting === 0 && data.name === file
    if (type === 'test:complete' && isWholeFile)
      yield line({ type: 'file', file, ms: data.details.duration_ms })
    const { failureType, cause, message = '' } = (data.details.error ?? {}) as TestError
    if (type !== 'test:fail' || failureType === 'subtestsFailed') continue
    const error = cause instanceof Error ? cause.message : message
    yield line({ type: 'failure', file, test: isWholeFile ? 'the file itself' : data.name, error })
  }
}

const line = (record: TestRecord): string => `${JSON.stringify(record)}\n`
