import { createHash } from 'node:crypto'
import {
  type SentStatement,
  StatementReader,
  splitter,
  tagOf,
  writesOf,
} from '../../server/src/testing/peers/postgres-wire.ts'
import type { Reader, Watcher } from './tapped-proxy.ts'

/**
 * PostgreSQL: each statement that concerns mail, its response, and each COMMIT after a change. Transactions that change
 * nothing contain no points.
 */
export const readPostgres = (watch: Watcher): Reader => new PostgresReader(watch)

interface Statement {
  text: string
  what: string
  isWrite: boolean
  isCommit: boolean
}

class PostgresReader implements Reader {
  readonly there: (chunk: Buffer) => Buffer
  readonly back: (chunk: Buffer) => Buffer
  readonly #watch: Watcher
  #isOver = false
  readonly #statements = new StatementReader()
  /** The tables changed since BEGIN. */
  #changed: string[] = []
  /** The statements without a response yet; undefined for those that are not watched. */
  readonly #pending: (Statement | undefined)[] = []
  #tag = ''

  constructor(watch: Watcher) {
    this.#watch = watch
    this.there = splitter((type, body) => this.#ask(type, body), { hasStartup: true })
    this.back = splitter((type, body) => this.#answer(type, body), { hasStartup: false })
  }

  /** Returns false if this message and all later ones must not be forwarded. */
  #ask(type: string, body: Buffer): boolean {
    if (this.#isOver) return false
    const sent = this.#statements.read(type, body)
    if (!sent) return true
    if (!sent.isInTransaction) this.#changed = []
    const statement = this.#statementOf(sent)
    this.#pending.push(statement)
    if (statement) this.#isOver = this.#watch({ what: statement.what, when: 'before', text: sent.text })
    return !this.#isOver
  }

  #statementOf({ text, opensTransaction }: SentStatement): Statement | undefined {
    if (/^\s*commit\b/i.test(text)) {
      if (this.#changed.length === 0) return undefined
      const what = `COMMIT (${[...new Set(this.#changed)].sort().join(', ')})`
      return { text, what, isWrite: true, isCommit: true }
    }
    if (opensTransaction || !concernsMail(text)) return undefined
    const writes = writesOf(text)
    return { text, what: nameOf(text, writes), isWrite: writes.length > 0, isCommit: false }
  }

  #answer(type: string, body: Buffer): boolean {
    if (this.#isOver) return false
    if (type === 'C') this.#tag = tagOf(body)
    if (type !== 'Z') return true
    const done = this.#pending.shift()
    if (!done) return true
    const isVain = done.isWrite && !done.isCommit && / 0$/.test(this.#tag)
    if (done.isWrite && !isVain) this.#changed.push(...writesOf(done.text))
    this.#isOver = this.#watch({ what: done.what, when: 'after', isVain, text: done.text })
    return !this.#isOver
  }
}

/** The tables that are read or written to send a message. A process's other work, such as its jobs, is ignored. */
const concernsMail = (text: string): boolean =>
  /\bmail\.|control\.(api_keys|api_key_stats|dkim_keys|identities|project_stats)\b/.test(plain(text)) &&
  !/\bjobs\./.test(plain(text))

const plain = (text: string): string => text.replaceAll('"', '')

/** A short digest distinguishes statements on the same tables. */
function nameOf(text: string, writes: string[]): string {
  const tables = plain(text).match(/\b(?:mail|control)\.[a-z_]+/g) ?? []
  const about = writes.length > 0 ? writes : [`select ${tables[0]}`]
  const digest = createHash('sha256').update(text.replace(/\s+/g, ' ').replace(/\$\d+/g, '$')).digest('hex')
  return `${[...new Set(about)].join(', ')} #${digest.slice(0, 4)}`
}
