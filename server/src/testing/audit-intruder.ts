import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { catchUpFile } from '../core/audit/checkpoint-file.ts'
import { makeCheckpoints } from '../core/audit/checkpoints.ts'
import { type VerifyingKeys, verifyingKeysOf } from '../core/audit/keys.ts'
import { erasePerson } from '../core/audit/people.ts'
import { type Verification, verifyAudit } from '../core/audit/verify.ts'
import type { Db } from '../platform/db/db.ts'
import { auditEntry, everyKind, recordEach } from './audit-entries.ts'
import { cleanUp } from './cleanup.ts'
import { openDatabase, type TestDatabase, testDatabase } from './database.ts'

export const auditTables = ['audit', 'audit_people', 'audit_checkpoints', 'audit_heads'] as const
export type AuditTable = (typeof auditTables)[number]

export const masterKeys = [{ id: 'k1', key: Buffer.alloc(32, 7) }] as const

/**
 * An audit with rows of every kind, and somebody who can do anything to it: a superuser, past the triggers and
 * without the check constraints.
 *
 * Chain 7 has 5 rows, of which the 2 checkpoints cover 4; chains 0 (5 rows) and 8 (4 rows) are covered; chain 9 has 1 row that
 * no checkpoint covers. Dan, the actor of five rows, is erased, once before each checkpoint; row 3 of chain 8 is one of
 * his, rows 3 and 5 of chain 0 record it.
 */
export interface IntrudedAudit {
  database: TestDatabase
  db: Db
  keys: VerifyingKeys
  /** A copy of the checkpoints, out of the intruder's reach. */
  checkpointFile: string
  /** What the intruder does. */
  query: pg.Client['query']
  verify(withFile: boolean): Promise<Verification>
  /** What verification says after the tampering, which is then undone. */
  verifyAfter(tamper: () => Promise<unknown>, withFile?: boolean): Promise<Verification>
}

export async function intrudedAudit(): Promise<IntrudedAudit> {
  const database = await testDatabase()
  const db = openDatabase(database).as('admin')
  const folder = await mkdtemp(path.join(tmpdir(), 'postern-audit-'))
  cleanUp(() => rm(folder, { recursive: true }))
  const checkpointFile = path.join(folder, 'checkpoints')
  await writeHistory(db, checkpointFile)
  const client = new pg.Client({ connectionString: database.superuserUrl })
  await client.connect()
  cleanUp(() => client.end())
  await breakIn(client)

  const keys = verifyingKeysOf(masterKeys)
  const verify = (withFile: boolean) =>
    verifyAudit(db, { keys, checkpointFile: withFile ? checkpointFile : undefined })
  return {
    database,
    db,
    keys,
    checkpointFile,
    query: client.query.bind(client),
    verify,
    async verifyAfter(tamper, withFile = false) {
      try {
        await tamper()
        return await verify(withFile)
      } finally {
        await restore(client)
      }
    },
  }
}

const dan = { userId: 2, email: 'dan@example.com', ip: '192.0.2.2', userAgent: null }

async function writeHistory(db: Db, checkpointFile: string): Promise<void> {
  const eraseDan = () =>
    db.transaction((tx) =>
      erasePerson(tx, { email: 'dan@example.com', requestId: 'r', reason: 'asked for it' }),
    )
  await recordEach(db, everyKind)
  await eraseDan()
  await makeCheckpoints(db, masterKeys)
  await catchUpFile(db, checkpointFile)
  const chains = [7, 7, 0, 8]
  await recordEach(
    db,
    chains.map((chain) => auditEntry({ projectId: chain === 0 ? null : chain, actor: dan })),
  )
  await eraseDan()
  await makeCheckpoints(db, masterKeys)
  await catchUpFile(db, checkpointFile)
  const subject = { email: 'eve@example.com', name: 'Eve' }
  await recordEach(db, [auditEntry(), auditEntry({ projectId: 9, subject })])
}

const backedUp = [...auditTables, 'audit_covered']

async function breakIn(client: pg.Client): Promise<void> {
  await client.query('set session_replication_role = replica')
  await client.query('create schema backup')
  for (const table of backedUp) await client.query(`create table backup.${table} as table control.${table}`)
  const { rows } = await client.query<{ statement: string }>(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as statement
       from pg_constraint where contype = 'c' and conrelid = any($1::regclass[])`,
    [auditTables.map((table) => `control.${table}`)],
  )
  for (const { statement } of rows) await client.query(statement)
}

async function restore(client: pg.Client): Promise<void> {
  const statements = backedUp.map(
    (table) => `delete from control.${table}; insert into control.${table} select * from backup.${table}`,
  )
  await client.query(statements.join(';'))
}
