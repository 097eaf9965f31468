import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { sql } from 'kysely'
import pg from 'pg'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { startCluster } from '../../testing/peers/postgres.ts'
import { PosternError } from '../errors.ts'
import { Database } from './db.ts'

const directory = await mkdtemp(path.join(tmpdir(), 'postern-standby-'))
cleanUp(() => rm(directory, { recursive: true, force: true }))
const cluster = await startCluster({ directory })
cleanUp(() => cluster.stop())

async function asSuperuser(...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: cluster.url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

/** Restarts the server as a standby without a primary. */
async function becomeStandby(): Promise<void> {
  await cluster.stop()
  await writeFile(path.join(directory, 'data/standby.signal'), '')
  await cluster.start()
}

test('a standby is reported as unavailable, and the pool recovers after its promotion', async () => {
  await asSuperuser(
    'create role postern_admin',
    'create role postern_app login noinherit in role postern_admin',
    'create table public.written (at timestamptz)',
    'grant insert on public.written to postern_admin',
  )
  const url = cluster.url.replace('postgres@', 'postern_app@')
  const database = new Database({ url, applicationName: 'postern test', poolSize: 2, onError: () => {} })
  cleanUp(() => database.close())
  const db = database.as('admin')
  const write = () => db.transaction((tx) => sql`insert into public.written values (now())`.execute(tx))
  await write()

  await becomeStandby()
  const isOutage = (error: unknown): boolean =>
    error instanceof PosternError && error.code === 'unavailable' && error.retryAfterSeconds === 1
  // More attempts than the pool size: rejected connections leave the pool.
  for (let time = 1; time <= 4; time++) {
    await assert.rejects(write(), isOutage)
    await assert.rejects(
      db.read((tx) => sql`select 1`.execute(tx)),
      isOutage,
    )
  }

  await asSuperuser('select pg_promote()')
  await write()
})
