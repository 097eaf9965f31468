import type { TestContext } from 'node:test'
import pg from 'pg'

/** A prepared statement is an object. */
const textOf = (query: unknown): string =>
  typeof query === 'string' ? query : (query as { text: string }).text

/**
 * Statements that do not belong to the work of a test: hints are sent up to 50 ms after a commit, possibly one of an
 * earlier test, and the check of a connection depends on which connections are open.
 */
const isUnrelated = (text: string): boolean =>
  text.includes('pg_notify') || text.includes('pg_is_in_recovery')

/** Records the statements that this process sends to databases, until the end of the test. */
export function recordStatements(t: TestContext) {
  const { mock } = t.mock.method(pg.Client.prototype, 'query')
  const texts = () => mock.calls.map((call) => textOf(call.arguments[0])).filter((text) => !isUnrelated(text))
  return {
    get count() {
      return texts().length
    },
    get texts() {
      return texts()
    },
    /** How many contain a text. */
    about: (text: string) => texts().filter((statement) => statement.includes(text)).length,
    reset: () => mock.resetCalls(),
    stop: () => mock.restore(),
  }
}
