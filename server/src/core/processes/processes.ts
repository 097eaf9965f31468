import { randomUUIDv7 } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReadTx, UnscopedDb } from '../../platform/db/db.ts'
import type { Logger } from '../../platform/telemetry/log.ts'
import {
  listProcessRows,
  type ProcessKind,
  type ProcessRow,
  processKinds,
  removeProcess,
  upsertProcess,
} from './processes.sql.ts'

export type { ProcessKind, ProcessRow }
export { processKinds }

/**
 * The running processes, for the overview. Each process has a row in its home database, because a process in a cell must not
 * depend on the control database. The signer has no row: it cannot write to any database.
 */
export interface ProcessDeps {
  /** The home database of the process, with the mail role. */
  db: UnscopedDb
  log: Logger
  kind: ProcessKind
  version: string
  cell: string | null
  /** Shorter in tests. */
  everyMs?: number
}

const defaultEveryMs = 15_000
const maxListed = 200

/** Writes the row of this process until it is stopped. */
export function announceProcess({ db, log, kind, version, cell, everyMs = defaultEveryMs }: ProcessDeps): {
  stop(): Promise<void>
} {
  const own = { id: randomUUIDv7(), kind, host: hostname(), version, cell }
  const stopping = new AbortController()
  const { signal } = stopping
  const announcing = (async () => {
    let isFailing = false
    while (!signal.aborted) {
      try {
        await db.writeOne((tx) => upsertProcess(tx, own))
        isFailing = false
      } catch (error) {
        // Logged once, however long the database is unavailable.
        if (!isFailing) log.warn({ err: error }, 'the process could not be announced; retrying')
        isFailing = true
      }
      await sleep(everyMs, undefined, { signal }).catch(() => {})
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await announcing
      // If this fails, the process is shown as not running until its row is replaced.
      await db.transaction((tx) => removeProcess(tx, own.id)).catch(() => {})
    },
  }
}

export const listProcesses = (tx: ReadTx): Promise<ProcessRow[]> => listProcessRows(tx, maxListed)
