import { createHash } from 'node:crypto'
import {
  opensTransaction,
  splitter,
  stringsOf,
  writesOf,
} from '../../server/src/testing/peers/postgres-wire.ts'
import type { Reader, Watcher } from './tapped-proxy.ts'

/**
 * PostgreSQL: each statement that concerns mail, its response, and each COMMIT after a change. Transactions that change
 * nothing contain no points.
 */
export const readPostgres = (watch: Watcher): Reader => new PostgresReader(watch)

interface Statement {
  what: string
  isWrite: boolean
  isCommit: boolean
}

class PostgresReader implements Reader {
  readonly there: (chunk: Buffer) => Buffer
  readonly back: (chunk: Buffer) => Buffer
  readonly #watch: Watcher
  #isOver = false
  #text = ''
  /** The transaction status of the last response: idle, open or failed. */
  #status = 'I'
  /** The tables changed since BEGIN. */
  #changed: string[] = []
  #pending: Statement | undefined
  #tag = ''

  constructor(watch: Watcher) {
    this.#watch = watch
    this.there = splitter((type, body) => this.#ask(type, body), { hasStartup: true })
    this.back = splitter((type, body) => this.#answer(type, body), { hasStartup: false })
  }

  /** Returns false if this message and all later ones must not be forwarded. */
  #ask(type: string, body: Buffer): boolean {
    if (type === 'P') this.#text = stringsOf(body)[1] ?? ''
    if (type === 'Q') this.#text = stringsOf(body)[0] ?? ''
    if (this.#isOver || (type !== 'Q' && type !== 'E')) return !this.#isOver
    if (this.#status === 'I') this.#changed = []
    this.#pending = this.#statementOf(this.#text)
    if (this.#pending)
      this.#isOver = this.#watch({ what: this.#pending.what, when: 'before', text: this.#text })
    return !this.#isOver
  }

  #statementOf(text: string): Statement | undefined {
    if (/^\s*commit\b/i.test(text)) {
      if (this.#changed.length === 0) return undefined
      const what = `COMMIT (${[...new Set(this.#changed)].sort().join(', ')})`
      return { what, isWrite: true, isCommit: true }
    }
    if (opensTransaction(text) || !concernsMail(text)) return undefined
    const writes = writesOf(text)
    return { what: nameOf(text, writes), isWrite: writes.length > 0, isCommit: false }
  }

  #answer(type: string, body: Buffer): boolean {
    if (this.#isOver) return false
    if (type === 'C') this.#tag = stringsOf(body)[0] ?? ''
    if (type !== 'Z') return true
    this.#status = body.toString('latin1')
    const done = this.#pending
    this.#pending = undefined
    if (!done) return true
    const isVain = done.isWrite && !done.isCommit && / 0$/.test(this.#tag)
    if (done.isWrite && !isVain) this.#changed.push(...writesOf(this.#text))
    this.#isOver = this.#watch({ what: done.what, when: 'after', isVain, text: this.#text })
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
