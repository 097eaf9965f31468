import pg from 'pg'
import { arrayLiteral } from './array-literal.ts'
import { isStalePlan } from './failures.ts'

/** A statement is prepared after this many executions. One-off statements would only use memory on the server. */
const usesBeforePreparing = 3
/** Each connection keeps every prepared statement. */
const maxPrepared = 300

/** Texts that are counted; a statement whose text varies must not use more memory. */
const maxTexts = 5_000

/** The names of prepared statements by text, for all connections of this process. */
const names = new Map<string, { uses: number; name: string | undefined }>()
let prepared = 0

function nameOf(text: string): string | undefined {
  const known = names.get(text)
  if (known?.name !== undefined) return known.name
  if (prepared >= maxPrepared || (!known && names.size >= maxTexts)) return undefined
  const uses = (known?.uses ?? 0) + 1
  const name = uses > usesBeforePreparing ? `p${++prepared}` : undefined
  names.set(text, { uses, name })
  return name
}

const parameterOf = (value: unknown): unknown => (Array.isArray(value) ? arrayLiteral(value) : value)

type Query = (text: unknown, values?: unknown, callback?: unknown) => unknown

/**
 * Prepares the statements of read-write transactions, or all statements. PostgreSQL parses and plans a statement for each
 * execution unless it is prepared, and this takes longer than the execution.
 *
 * Lists are not prepared: their best plan depends on the values of their filters.
 */
export function preparingClient(which: 'writes' | 'all'): typeof pg.Client {
  return class PreparingClient extends pg.Client {
    #isWriting = false

    override query = ((text: unknown, given?: unknown, callback?: unknown): unknown => {
      const query = pg.Client.prototype.query.bind(this) as Query
      if (typeof text !== 'string') return query(text, given, callback)
      const values = Array.isArray(given) ? given.map(parameterOf) : given
      if (/^(?:start transaction|commit|rollback)/.test(text)) this.#isWriting = text.endsWith('read write')
      const isPrepared = (which === 'all' || this.#isWriting) && Array.isArray(values) && values.length > 0
      const name = isPrepared ? nameOf(text) : undefined
      if (name === undefined) return query(text, values, callback)
      const result = query({ name, text, values }, callback)
      if (result instanceof Promise) result.catch((error: unknown) => this.#discardIfStale(error))
      return result
    }) as pg.Client['query']

    /** The transaction is retried on a connection without the prepared statement. */
    #discardIfStale(error: unknown): void {
      if (isStalePlan(error)) void this.end().catch(() => {})
    }
  }
}
