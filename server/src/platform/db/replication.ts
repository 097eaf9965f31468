import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { UsageError } from '../errors.ts'
import { publicationName, publishedTables, replicationRole } from './database-kind.ts'

/**
 * Replicates the control tables to a cell with PostgreSQL's logical replication: one subscription in each
 * cell's database. The subscription belongs to a superuser on the cell's server, which bypasses row-level
 * security. The planes' roles cannot write to the replica (database-kind.ts).
 */
export interface ReplicationOptions {
  cell: string
  /** A superuser's login on the cell's server. */
  ownerUrl: string
  /** Login that the cell's server uses to connect to the control database. */
  sourceUrl: string
  onProgress: (copiedTables: number, allTables: number) => void
  /** Shorter in tests. */
  timeoutMs?: number
}

const connectTimeoutMs = 10_000
const pollEveryMs = 100
// A few hundred thousand projects take up a few hundred megabytes.
const usualTimeoutMs = 30 * 60_000

/** Creates or refreshes the subscription, and returns when every table is copied and replicating. */
export async function startReplication(options: ReplicationOptions): Promise<'begun' | 'refreshed'> {
  const { cell, ownerUrl, sourceUrl } = options
  await withClient(sourceUrl, requireSource)
  return withClient(ownerUrl, async (client) => {
    await requireSuperuser(client)
    const name = `postern_${cell}`
    const { rows } = await client.query(
      `select from pg_catalog.pg_subscription where subname = $1
         and subdbid = (select oid from pg_catalog.pg_database where datname = current_database())`,
      [name],
    )
    const connection = pg.escapeLiteral(sourceUrl)
    if (rows.length === 0) {
      await requireEmptyReplica(client)
      await client.query(
        `create subscription ${name} connection ${connection} publication ${publicationName} with (slot_name = ${name})`,
      )
    } else {
      await client.query(`alter subscription ${name} connection ${connection}`)
      await client.query(`alter subscription ${name} refresh publication`)
    }
    await untilCopied(client, name, options)
    await withClient(sourceUrl, (source) => requireSlot(source, name))
    return rows.length === 0 ? 'begun' : 'refreshed'
  })
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'postern cell',
    connectionTimeoutMillis: connectTimeoutMs,
  })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** A login that is subject to row-level security would copy empty tables without an error. */
async function requireSource(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{
    wal_level: string
    can_replicate: boolean
    can_read: boolean
    is_published: boolean
  }>(
    `select current_setting('wal_level') as wal_level,
            rolsuper or (rolreplication and rolbypassrls) as can_replicate,
            (select bool_and(has_table_privilege(name, 'select')) from unnest($1::text[]) as name) as can_read,
            exists (select from pg_catalog.pg_publication where pubname = $2) as is_published
       from pg_catalog.pg_roles where rolname = current_user`,
    [publishedTables, publicationName],
  )
  const [row] = rows
  const login = pg.escapeIdentifier(client.user ?? '')
  if (!row?.is_published)
    throw new UsageError('The control database has no publication yet: run `postern migrate` first.')
  if (row.wal_level !== 'logical') {
    throw new UsageError(
      `The control server has wal_level "${row.wal_level}". Set it to "logical" and restart the server.`,
    )
  }
  if (!row.can_replicate || !row.can_read) {
    throw new UsageError(
      `The login of "source_url" is not allowed to replicate control. As a superuser of the control server, run:\n` +
        `  create role ${replicationRole} nologin;\n  alter role ${login} replication bypassrls;\n` +
        `  grant ${replicationRole} to ${login};\nthen \`postern migrate\`, which grants it access to the published tables.`,
    )
  }
}

async function requireSuperuser(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ rolsuper: boolean }>(
    'select rolsuper from pg_catalog.pg_roles where rolname = current_user',
  )
  if (rows[0]?.rolsuper) return
  throw new UsageError(
    '"owner_url" of the cell must be a superuser of its server; other logins cannot create a subscription.',
  )
}

async function requireEmptyReplica(client: pg.Client): Promise<void> {
  const { rows } = await client.query('select from control.projects limit 1')
  if (rows.length > 0)
    throw new UsageError('The cell has its own projects or an old replica. Use an empty database.')
}

/**
 * Copied tables do not prove that replication works: after a failover or WAL loss, the control database has
 * no usable slot.
 */
async function requireSlot(source: pg.Client, name: string): Promise<void> {
  for (const end = performance.now() + connectTimeoutMs; ; await sleep(pollEveryMs)) {
    const { rows } = await source.query<{ active: boolean; wal_status: string | null }>(
      'select active, wal_status from pg_catalog.pg_replication_slots where slot_name = $1',
      [name],
    )
    const [slot] = rows
    if (slot?.active && slot.wal_status !== 'lost') return
    if (performance.now() < end) continue
    throw new UsageError(
      `The cell has a replica of control but is not replicating: ${slot ? `the slot ${name} is not in use` : `control has no slot ${name}`}. ` +
        "The log of the cell's server says why. docs/operations/scale.md describes how to rejoin a cell.",
    )
  }
}

async function untilCopied(
  client: pg.Client,
  name: string,
  { onProgress, timeoutMs = usualTimeoutMs }: ReplicationOptions,
): Promise<void> {
  const end = performance.now() + timeoutMs
  for (;;) {
    const { rows } = await client.query<{ copied: number; total: number }>(
      `select (count(*) filter (where srsubstate = 'r'))::int as copied, count(*)::int as total
         from pg_catalog.pg_subscription_rel join pg_catalog.pg_subscription on oid = srsubid where subname = $1`,
      [name],
    )
    const { copied, total } = rows[0] ?? { copied: 0, total: 0 }
    onProgress(copied, total)
    if (total > 0 && copied === total) return
    if (performance.now() > end) {
      throw new UsageError(
        `After ${timeoutMs / 1000} seconds, ${copied} of ${total} tables are copied. The cell's server continues; its log ` +
          'shows what blocks it, such as too few max_replication_slots on the control server.',
      )
    }
    await sleep(pollEveryMs)
  }
}
