import type pg from 'pg'
import type { Config } from '../config/config.ts'
import type { BetterAuth } from '../core/control/access/better-auth.ts'
import type { Cell } from '../platform/db/cells.ts'
import type { Db, UnscopedDb } from '../platform/db/db.ts'
import type { Resolver } from '../platform/net/dns.ts'

/**
 * `failure`: something does not work, or will not. `warning`: it works, and somebody will be sorry. `skipped`: it could
 * not be looked at, because of something that is told elsewhere.
 */
export type Level = 'ok' | 'warning' | 'failure' | 'skipped'

/** What was seen, as a sentence, and what to do about it. */
export interface Finding {
  level: Level
  finding: string
  remedy: string | null
}

export interface Check {
  name: string
  /** `login`: a connection to the database. `tables`: the planes' roles, and tables that were migrated. */
  needs?: 'login' | 'tables'
  /** Reads only. What it throws is a failure that nobody has foreseen. */
  look(ground: DoctorContext): Promise<Finding[]>
}

/** What an installation stands on, as far as it could be opened (context.ts). */
export interface DoctorContext {
  settings: Config
  dns: Resolver
  /** As the application logs in, acting for no plane. */
  login: Login
  /** As the administrative plane. */
  db: UnscopedDb
  /** Those with a copy of control. */
  cells: readonly Cell[]
  /** As whoever signs people in. */
  identity: Db
  auth: BetterAuth
  /** Why there is none of it. */
  missing: Partial<Record<NonNullable<Check['needs']>, Finding>>
}

export interface Login {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}

export const ok = (finding: string): Finding => ({ level: 'ok', finding, remedy: null })
export const warning = (finding: string, remedy: string): Finding => ({ level: 'warning', finding, remedy })
export const failure = (finding: string, remedy: string): Finding => ({ level: 'failure', finding, remedy })

/** Of several looks, what is wrong; or the one sentence that says that nothing is. */
export const unlessFound = (found: (Finding | undefined)[], finding: string): Finding[] => {
  const wrong = found.filter((one) => one !== undefined)
  return wrong.length > 0 ? wrong : [ok(finding)]
}

export const messageOf = (error: unknown): string => {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const first = inner instanceof AggregateError ? inner.errors[0] : inner
  return first instanceof Error ? first.message.replace(/\.$/, '') : String(first)
}
