import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { emptyDatabase, openDatabase, type TestDatabase } from '../../testing/harness/database.ts'
import { migrate, pendingMigrations } from './migrate.ts'

const files = (await readdir(new URL('../../../migrations/', import.meta.url))).map((file) =>
  file.replace('.sql', ''),
)

const run = (database: TestDatabase, log: (line: string) => void = () => {}) =>
  migrate({ ownerUrl: database.superuserUrl, appUser: 'postern_app', log })

/** Everything in the database as SQL: structure, rows, owners, privileges, policies. */
async function dump({ superuserUrl }: TestDatabase): Promise<string> {
  const { stdout } = await promisify(execFile)('pg_dump', ['--dbname', superuserUrl], {
    maxBuffer: 64 * 1024 * 1024,
  })
  // pg_dump generates a new key for these two lines on each run.
  return stdout.replace(/^\\(un)?restrict .*$/gm, '')
}

test('a second migration changes nothing', async () => {
  const database = await emptyDatabase()
  assert.deepEqual(await run(database), files)
  const before = await dump(database)
  assert.deepEqual(await run(database), [])
  assert.equal(await dump(database), before)
})

test('of three concurrent migrations one applies the files, and the others wait', async () => {
  const database = await emptyDatabase()
  const lines: string[] = []
  const runs = await Promise.all([1, 2, 3].map(() => run(database, (line) => lines.push(line))))
  assert.deepEqual(
    runs.map(({ length }) => length).sort((a, b) => a - b),
    [0, 0, files.length],
  )
  const waited = lines.filter((line) => line.startsWith('Another migration of this database is running'))
  assert.ok(waited.length >= 1, 'the wait is logged')
})

test('an interrupted migration resumes where it stopped', async () => {
  const database = await emptyDatabase()
  // The second file fails and is rolled back completely.
  await database.query(`create function public.refuse() returns event_trigger language plpgsql as
    $$ begin raise exception 'not today'; end $$`)
  await database.query(
    `create event trigger refuse on ddl_command_start when tag in ('CREATE DOMAIN') execute function public.refuse()`,
  )
  await assert.rejects(run(database), /not today/)
  const applied = await database.query<{ name: string }>('select name from postern.migrations order by id')
  assert.deepEqual(
    applied.map(({ name }) => name),
    files.slice(0, 1),
  )
  const left = await database.query(
    `select 1 from pg_tables where schemaname = 'control' and tablename = 'users'`,
  )
  assert.equal(left.length, 0, 'a file is applied completely or not at all')

  await database.query('drop event trigger refuse')
  assert.deepEqual(await run(database), files.slice(1))
})

test('pending migrations are listed by name', async () => {
  const database = await emptyDatabase()
  await run(database)
  const db = openDatabase(database).as('admin')
  assert.deepEqual(await db.read(pendingMigrations), [])
  await database.query('delete from postern.migrations where name = $1', [files.at(-1)])
  assert.deepEqual(await db.read(pendingMigrations), files.slice(-1))
})

test('a database from a newer version has no pending migrations and is not changed', async () => {
  const database = await emptyDatabase()
  await run(database)
  await database.query(`insert into postern.migrations (name, run_on) values ('999999_next', now())`)
  const db = openDatabase(database).as('admin')
  assert.deepEqual(await db.read(pendingMigrations), [], 'a process of the previous release stays ready')
  assert.deepEqual(await run(database), [])
})

/**
 * A login with no privileges other than membership in postern_owner, as docs/operations/database.md
 * describes.
 */
async function migratorOf(database: TestDatabase): Promise<string> {
  const url = new URL(database.superuserUrl)
  await database.query(`alter database ${url.pathname.slice(1)} owner to postern_owner`)
  await database.query(`do $$ begin create role migrator login noinherit in role postern_owner;
    exception when duplicate_object then null; end $$`)
  url.username = 'migrator'
  return url.href
}

const searchIndexes = (database: TestDatabase) =>
  database.query<{ definition: string }>(
    `select pg_get_indexdef(indexrelid) as definition from pg_index
      where pg_get_indexdef(indexrelid) like '%gin_trgm_ops%' order by 1`,
  )

test('a login without superuser rights can migrate, including text search', async () => {
  const database = await emptyDatabase()
  const ownerUrl = await migratorOf(database)
  assert.deepEqual(await migrate({ ownerUrl, appUser: 'postern_app', log: () => {} }), files)
  assert.equal((await searchIndexes(database)).length, 4)
})

test('migrations use a pg_trgm that is installed in another schema', async () => {
  const database = await emptyDatabase()
  await database.query(`create schema "Their own"; grant usage on schema "Their own" to public;
    create extension pg_trgm with schema "Their own"`)
  const ownerUrl = await migratorOf(database)
  assert.deepEqual(await migrate({ ownerUrl, appUser: 'postern_app', log: () => {} }), files)
  for (const { definition } of await searchIndexes(database))
    assert.match(definition, /"Their own".gin_trgm_ops/)
})

test('a login that is not a member of the owner role fails with the required grant', async () => {
  const database = await emptyDatabase()
  await assert.rejects(
    migrate({ ownerUrl: database.url, appUser: 'postern_app', log: () => {} }),
    /Set POSTERN_DATABASE_OWNER_URL.*grant postern_owner to "postern_app"/s,
  )
})
