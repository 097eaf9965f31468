import type pg from 'pg'
import type { Config } from '../config/config.ts'
import type { BetterAuth } from '../core/control/access/better-auth.ts'
import type { Cell } from '../platform/db/cells.ts'
import type { Db, UnscopedDb } from '../platform/db/db.ts'
import type { Resolver } from '../platform/net/dns.ts'

/**
 * `failure`: something does not work, or will soon stop working. `warning`: it works, but with a risk. `skipped`:
 * the check could not run, because of a failure that another check reports.
 */
export type Level = 'ok' | 'warning' | 'failure' | 'skipped'

/** What a check found, as a sentence, and the remedy. */
export interface Finding {
  level: Level
  finding: string
  remedy: string | null
}

export interface Check {
  name: string
  /** `login`: a connection to the database. `tables`: the plane roles and migrated tables. */
  needs?: 'login' | 'tables'
  /** Must not write. An exception is reported as a failure of the check. */
  run(context: DoctorContext): Promise<Finding[]>
}

/** The resources that the checks use, if they could be opened (context.ts). */
export interface DoctorContext {
  settings: Config
  dns: Resolver
  /** The application's login, without any role. */
  login: Login
  /** Uses the administrative plane's role. */
  db: UnscopedDb
  /** The cells that have a replica of the control database. */
  cells: readonly Cell[]
  /** Uses the sign-in role. */
  identity: Db
  auth: BetterAuth
  /** For each requirement that is not met, the finding that explains why. */
  missing: Partial<Record<NonNullable<Check['needs']>, Finding>>
}

export interface Login {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}

export const ok = (finding: string): Finding => ({ level: 'ok', finding, remedy: null })
export const warning = (finding: string, remedy: string): Finding => ({ level: 'warning', finding, remedy })
export const failure = (finding: string, remedy: string): Finding => ({ level: 'failure', finding, remedy })

/** The problems among several findings; if there are none, a single `ok` with this sentence. */
export const unlessFound = (found: (Finding | undefined)[], finding: string): Finding[] => {
  const problems = found.filter((one) => one !== undefined)
  return problems.length > 0 ? problems : [ok(finding)]
}

export const messageOf = (error: unknown): string => {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const first = inner instanceof AggregateError ? inner.errors[0] : inner
  return first instanceof Error ? first.message.replace(/\.$/, '') : String(first)
}
