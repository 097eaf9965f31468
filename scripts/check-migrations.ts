import { spawnSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { startCluster } from '../server/src/testing/peers/postgres.ts'
import { checkCompatibility } from './migrations/compatibility.ts'
import { contractFaults } from './migrations/contract.ts'
import { readRecords, releasedVersions } from './released/records.ts'

/**
 * Runs Squawk's rules on all migrations, except those that do not apply.
 *
 * Migrations expand first and contract one release later (docs/operations/upgrade.md). Each file added after the first
 * release is applied to a private PostgreSQL, and rejected if it is incompatible with the program's previous release.
 *
 * Before the first release, files can be changed and removed. From then on, released/<version>/migrations.sha256 lists
 * the files of each release, and scripts/check-released.ts rejects changes to them.
 */
const [first] = (await readRecords()).filter(({ isReleased }) => isReleased)

/** Squawk's rules that do not apply, with the reasons. */
const excluded = {
  // Counters of a day, ports, percentages and shard numbers are bounded; ids are bigint.
  'prefer-bigint-over-int': 'all files',
  'prefer-bigint-over-smallint': 'all files',
  // A new database: no other transaction uses the tables, and no row can violate a domain's check.
  'require-lock-timeout': 'first release',
  'require-statement-timeout': 'first release',
  'ban-create-domain-with-constraint': 'first release',
} as const

const root = new URL('../', import.meta.url)
const folder = new URL('server/migrations/', root)
const isInFirstRelease = (file: string): boolean => first === undefined || first.migrations.has(file)

const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort()
const checked = files.filter((file) => !isInFirstRelease(file))
const released = await releasedVersions()
const faults = [...lint('first release'), ...lint('later'), ...(checked.length === 0 ? [] : await checkAll())]
for (const fault of faults) process.stderr.write(`${fault}\n`)
process.stdout.write(
  `${files.length - checked.length} files belong to the first release, ${checked.length} later ones were checked.\n`,
)
process.exitCode = faults.length === 0 ? 0 : 1

/** Each file is one transaction. */
function lint(which: 'first release' | 'later'): string[] {
  const own = files.filter((file) => checked.includes(file) === (which === 'later'))
  if (own.length === 0) return []
  const rules = Object.entries(excluded).filter(([, where]) => where === 'all files' || where === which)
  const { status, stdout, stderr } = spawnSync(
    fileURLToPath(new URL('node_modules/.bin/squawk', root)),
    [
      '--assume-in-transaction',
      '--pg-version=15',
      '--reporter=gcc',
      `--exclude=${rules.map(([rule]) => rule).join(',')}`,
      ...own,
    ],
    { cwd: fileURLToPath(folder), encoding: 'utf8' },
  )
  if (status === 0) return []
  const found = stdout.split('\n').filter((line) => line !== '')
  return found.length > 0 ? found : [`squawk failed: ${stderr}`]
}

async function checkAll(): Promise<string[]> {
  const cluster = await startCluster()
  const client = new pg.Client({ connectionString: cluster.url })
  try {
    await client.connect()
    await client.query(await readFile(new URL('server/roles.sql', root), 'utf8'))
    await client.query('grant create on database postgres to postern_owner')
    await client.query('set role postern_owner; set search_path = pg_catalog; create schema postern')
    // The table that node-pg-migrate creates. The migrations expect it to exist.
    await client.query(
      'create table postern.migrations (id serial primary key, name varchar(255), run_on timestamp)',
    )
    const found: string[] = []
    for (const file of files) {
      const sql = await readFile(new URL(file, folder), 'utf8')
      await client.query('begin')
      if (isInFirstRelease(file)) await client.query(sql)
      else found.push(...(await faultsOf(client, sql)).map((fault) => `${file}: ${fault}`))
      await client.query('commit')
    }
    return found
  } finally {
    await client.end()
    await cluster.stop()
  }
}

async function faultsOf(client: pg.Client, sql: string): Promise<string[]> {
  const { contracts, blocks } = await checkCompatibility(client, sql)
  const contract = contractFaults(sql, released)
  return [...(contract ?? contracts), ...blocks]
}
