import pg from 'pg'
import { Cells, cellIn } from '../../platform/db/cells.ts'
import type { DatabaseKind } from '../../platform/db/database-kind.ts'
import { Database, type DatabaseOptions } from '../../platform/db/db.ts'
import { migrate } from '../../platform/db/migrate.ts'
import { startReplication } from '../../platform/db/replication.ts'
import { cleanUp } from './cleanup.ts'
import { isOfBoth, isOfMail, isSplit, SplitDatabase } from './split-databases.ts'

/**
 * Databases for tests. Each file clones the migrated template, so files can run in parallel and never read each
 * other's rows. The application connects as in production, with a login that is neither superuser nor owner.
 */
const clusterVariable = 'POSTERN_TEST_CLUSTER'
const cellClusterVariable = 'POSTERN_TEST_CELL_CLUSTER'
const templateName = 'postern_template'
const appUser = 'postern_app'

export interface TestDatabase {
  /** URL with the application's login. */
  url: string
  /** URL with the superuser's login, for statements that the application may not run. */
  superuserUrl: string
  /** URL of the mail database, if it is separate (testing/harness/split-databases.ts). */
  cellUrl?: string | undefined
  /** Runs a statement as the superuser. */
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}

/** Called once before all files (testing/harness/global-setup.ts). */
export async function makeTemplates(clusterUrl: string, cellClusterUrl?: string): Promise<void> {
  await makeTemplate(clusterUrl, isSplit ? 'control' : 'whole')
  if (cellClusterUrl === undefined) return
  process.env[cellClusterVariable] = cellClusterUrl
  await makeTemplateIn(cellClusterUrl, 'cell')
}

/** Returns the template's URL. */
export async function makeTemplate(clusterUrl: string, part: DatabaseKind = 'whole'): Promise<string> {
  process.env[clusterVariable] = clusterUrl
  return makeTemplateIn(clusterUrl, part)
}

async function makeTemplateIn(clusterUrl: string, part: DatabaseKind): Promise<string> {
  await onCluster(clusterUrl, async (client) => {
    await client.query(`create role ${appUser} login noinherit`)
    await client.query(`create database ${templateName}`)
  })
  const url = urlIn(clusterUrl, templateName, 'postgres')
  await migrate({ ownerUrl: url, appUser, part, log: () => {} })
  return url
}

/** Uses the file copy strategy, because a test cluster does not need WAL entries for new databases. */
const fromTemplate = `template ${templateName} strategy file_copy`

/** A clone of the template, dropped after the file's tests. */
export const testDatabase = (): Promise<TestDatabase> => (isSplit ? createSplit() : create(fromTemplate))

/** An empty database, for testing the migrations. */
export const emptyDatabase = (): Promise<TestDatabase> => create('template template0')

/** Connection and lock timeouts that are long enough for a busy machine. Not for tests of these timeouts. */
export const patientTimeouts = { connectMs: 60_000, lockMs: 60_000 }

/** Opens the application's pools on a test database and closes them after the file's tests. */
export function openDatabase(
  { url, cellUrl }: TestDatabase,
  { poolSize = 4, onError = () => {}, ...rest }: Partial<DatabaseOptions> = {},
): Database {
  const options = {
    ...{ url, applicationName: 'postern test', poolSize, onError },
    ...{ timeouts: patientTimeouts, ...rest },
  }
  const database = cellUrl === undefined ? new Database(options) : new SplitDatabase(options, cellUrl)
  cleanUp(() => database.close())
  return database
}

/** The database's current time, comparable with timestamps written by the database. */
export async function databaseNow({ query }: TestDatabase): Promise<Date> {
  const [row] = await query<{ now: Date }>('select postern.now()')
  if (!row) throw new Error('a select without from returned no row')
  return row.now
}

/** The URL of the database with the mail schema. */
export function openCells(database: TestDatabase, options: Partial<DatabaseOptions> = {}): Cells {
  const opened = openDatabase(database, options)
  return opened instanceof SplitDatabase ? opened.cells() : new Cells([cellIn(opened, { name: 'mail' })])
}

let made = 0

async function create(from: string): Promise<TestDatabase> {
  const name = `test_${process.pid}_${++made}`
  return createIn(clusterUrlOf(clusterVariable), name, from)
}

async function createIn(clusterUrl: string, name: string, from: string): Promise<TestDatabase> {
  await onCluster(clusterUrl, (client) => client.query(`create database ${name} ${from}`))
  const superuserUrl = urlIn(clusterUrl, name, 'postgres')
  const pool = new pg.Pool({ connectionString: superuserUrl, max: 2 })
  // A connection that is closed because its database is dropped is not a test failure.
  pool.on('error', () => {})
  cleanUp(async () => {
    await pool.end()
    await onCluster(clusterUrl, (client) => client.query(`drop database ${name} with (force)`))
  })
  return {
    url: urlIn(clusterUrl, name, appUser),
    superuserUrl,
    async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) {
      return (await pool.query<Row>(text, values)).rows
    },
  }
}

async function createSplit(): Promise<TestDatabase> {
  const name = `test_${process.pid}_${++made}`
  const control = await createIn(clusterUrlOf(clusterVariable), name, fromTemplate)
  const cell = await createIn(clusterUrlOf(cellClusterVariable), name, fromTemplate)
  await startReplication({
    ...{ cell: name, ownerUrl: cell.superuserUrl, sourceUrl: control.superuserUrl },
    ...{ onProgress: () => {}, timeoutMs: 60_000 },
  })
  // The setting is changed from another database, because open connections to this one keep the previous value.
  const setSynchronousCommit = (how: string) =>
    onCluster(clusterUrlOf(clusterVariable), (client) =>
      client.query(`alter database ${name} set synchronous_commit = ${how}`),
    )
  await setSynchronousCommit('remote_apply')
  cleanUp(async () => {
    await setSynchronousCommit('off')
    await cell.query(`drop subscription postern_${name}`)
  })
  // The heartbeat never expires, because no worker updates it and tests can move the clock.
  await control.query(`insert into control.heartbeat (at) values (now() + interval '100 years')`)
  return {
    ...control,
    cellUrl: cell.url,
    async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) {
      if (isOfBoth(text)) await cell.query(text, values)
      return isOfMail(text) ? cell.query<Row>(text, values) : control.query<Row>(text, values)
    },
  }
}

async function onCluster(clusterUrl: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: urlIn(clusterUrl, 'postgres', 'postgres') })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

function clusterUrlOf(variable: string): string {
  const cluster = process.env[variable]
  if (!cluster)
    throw new Error('Tests need their PostgreSQL: run them with `npm test` or `npm test -- <file>`.')
  return cluster
}

function urlIn(clusterUrl: string, database: string, user: string): string {
  const url = new URL(clusterUrl)
  url.username = user
  url.pathname = `/${database}`
  return url.href
}
