import pg from 'pg'
import { Database, type DatabaseOptions } from '../platform/db/db.ts'
import { migrate } from '../platform/db/migrate.ts'
import { cleanUp } from './cleanup.ts'

/**
 * Databases for tests: each file clones the migrated template, so files run in parallel and none sees
 * another's rows. The application connects as it does in production, by a login that is no superuser and
 * not the owner.
 */
const clusterVariable = 'POSTERN_TEST_CLUSTER'
const templateName = 'postern_template'
const appUser = 'postern_app'

export interface TestDatabase {
  /** The application's login. */
  url: string
  /** The superuser's, for what only a test may do. */
  superuserUrl: string
  /** Runs a statement as the superuser. */
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}

/** Called once before all files (testing/global-setup.ts); returns the template's address. */
export async function makeTemplate(clusterUrl: string): Promise<string> {
  process.env[clusterVariable] = clusterUrl
  await onCluster(async (client) => {
    await client.query(`create role ${appUser} login noinherit`)
    await client.query(`create database ${templateName}`)
  })
  const url = urlOf(templateName, 'postgres')
  await migrate({ ownerUrl: url, appUser, log: () => {} })
  return url
}

/** A clone of the template, dropped when the file's tests are over. */
export const testDatabase = (): Promise<TestDatabase> => create(`template ${templateName}`)

/** A database without anything in it, for the tests of migration itself. */
export const emptyDatabase = (): Promise<TestDatabase> => create('template template0')

/** Opens the application's pools on a test database; closed when the file's tests are over. */
export function openDatabase(
  { url }: TestDatabase,
  { poolSize = 4, onError = () => {}, ...rest }: Partial<DatabaseOptions> = {},
): Database {
  const database = new Database({ url, applicationName: 'postern test', poolSize, onError, ...rest })
  cleanUp(() => database.close())
  return database
}

let made = 0

async function create(from: string): Promise<TestDatabase> {
  const name = `test_${process.pid}_${++made}`
  await onCluster((client) => client.query(`create database ${name} ${from}`))
  const superuserUrl = urlOf(name, 'postgres')
  const pool = new pg.Pool({ connectionString: superuserUrl, max: 2 })
  // A connection that ends with its database is no failure of a test.
  pool.on('error', () => {})
  cleanUp(async () => {
    await pool.end()
    await onCluster((client) => client.query(`drop database ${name} with (force)`))
  })
  return {
    url: urlOf(name, appUser),
    superuserUrl,
    async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) {
      return (await pool.query<Row>(text, values)).rows
    },
  }
}

async function onCluster(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: urlOf('postgres', 'postgres') })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

function urlOf(database: string, user: string): string {
  const cluster = process.env[clusterVariable]
  if (!cluster)
    throw new Error('Tests need their PostgreSQL: run them with `npm test` or `npm test -- <file>`.')
  const url = new URL(cluster)
  url.username = user
  url.pathname = `/${database}`
  return url.href
}
