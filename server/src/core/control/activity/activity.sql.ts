import { type RawBuilder, sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { allOf, boundedScan, type ScanResult, scanResultOf } from '../../shared/bounded-scan.ts'

/** One chain per project and one per user. Both kinds have tables with the same columns. */
export type Kind = 'project' | 'user'

const names = {
  project: {
    owner: sql.ref('project_id'),
    rows: sql.table('control.project_activity'),
    heads: sql.table('control.project_activity_heads'),
    people: sql.table('control.project_activity_people'),
  },
  user: {
    owner: sql.ref('user_id'),
    rows: sql.table('control.user_activity'),
    heads: sql.table('control.user_activity_heads'),
    people: sql.table('control.user_activity_people'),
  },
} as const

/** Returns the head of a chain, locked until the transaction ends. */
export interface ChainHead {
  seq: number
  hash: string
  at: string
}

export async function lockHead(tx: Tx, kind: Kind, owner: number): Promise<ChainHead> {
  const { rows } = await (kind === 'project'
    ? sql<ChainHead>`select * from control.lock_project_activity(${owner})`
    : sql<ChainHead>`select * from control.lock_user_activity(${owner})`
  ).execute(tx)
  const [head] = rows
  if (!head) throw new Error(`the activity chain of ${kind} ${owner} has no head`)
  return head
}

export async function append(tx: Tx, kind: Kind, entry: object, people: readonly object[]): Promise<void> {
  const [row, personal] = [JSON.stringify(entry), JSON.stringify(people)]
  await (kind === 'project'
    ? sql`select control.append_project_activity(${row}::jsonb, ${personal}::jsonb)`
    : sql`select control.append_user_activity(${row}::jsonb, ${personal}::jsonb)`
  ).execute(tx)
}

/** Whether the project's chain has a row for this request. */
export async function isRecorded(tx: ReadTx, projectId: number, requestId: string): Promise<boolean> {
  const { rows } = await sql`
    select from control.project_activity where project_id = ${projectId} and request_id = ${requestId}`.execute(
    tx,
  )
  return rows.length > 0
}

export async function admitAttempt(
  tx: Tx,
  userId: number,
  most: number,
): Promise<{ is_recorded: boolean; unrecorded: number }> {
  const { rows } = await sql<{ is_recorded: boolean; unrecorded: number }>`
    select * from control.count_sign_in_attempt(${userId}, ${most})`.execute(tx)
  return rows[0] ?? { is_recorded: false, unrecorded: 0 }
}

/** Whether a row for a correct password with the second factor pending exists in the current hour. */
export async function hasSucceeded(tx: ReadTx, userId: number, operation: string): Promise<boolean> {
  const { rows } = await sql`
    select from control.user_activity
     where user_id = ${userId} and operation = ${operation} and at >= date_trunc('hour', postern.now(), 'UTC')
       and after @> '{"outcome": "success", "second_factor_required": true}' limit 1`.execute(tx)
  return rows.length > 0
}

/** The form that is hashed: UTC with microseconds, independent of session settings. */
const instant = (at: RawBuilder<unknown>) => sql<string>`(to_json(${at} at time zone 'UTC') #>> '{}') || 'Z'`

export interface Person {
  part: string
  salt: string
  email: string | null
  ip: string | null
  user_agent: string | null
}

export interface ActivityRow {
  owner: number
  seq: number
  at: string
  actor_type: string
  actor_id: number | null
  actor_digest: string
  request_id: string
  operation: string
  resource_type: string
  resource_id: string | null
  before: object | null
  after: object | null
  prev_hash: string
  hash: string
  people: Person[]
}

const columns = (kind: Kind) => {
  const { owner, people } = names[kind]
  return sql`activity.${owner} as owner, activity.seq, ${instant(sql`activity.at`)} as at, activity.actor_type,
    activity.actor_id, encode(activity.actor_digest, 'hex') as actor_digest, activity.request_id, activity.operation,
    activity.resource_type, activity.resource_id, activity.before, activity.after,
    encode(activity.prev_hash, 'hex') as prev_hash, encode(activity.hash, 'hex') as hash,
    coalesce((select json_agg(json_build_object('part', people.part, 'salt', encode(people.salt, 'hex'),
                'email', people.email, 'ip', people.ip, 'user_agent', people.user_agent) order by people.part)
      from ${people} as people where people.${owner} = activity.${owner} and people.seq = activity.seq), '[]') as people`
}

/** Newest first. */
export async function listNewest(
  tx: ReadTx,
  kind: Kind,
  owner: number,
  { limit, beforeSeq }: { limit: number; beforeSeq: number },
): Promise<ActivityRow[]> {
  const { rows } = await sql<ActivityRow>`
    select ${columns(kind)} from ${names[kind].rows} as activity
     where activity.${names[kind].owner} = ${owner} and activity.seq < ${beforeSeq}
     order by activity.seq desc limit ${limit}`.execute(tx)
  return rows
}

export interface ActivityFilter {
  userId?: number | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/** Rows scanned at once; see core/shared/bounded-scan.ts. */
const scanLimit = 2_000

/** Newest first. Relayed rows can be older than the rows before them, so the filters by time do not narrow the range. */
export async function scanNewest(
  tx: ReadTx,
  kind: Kind,
  owner: number,
  { userId, from, to }: ActivityFilter,
  { limit, beforeSeq }: { limit: number; beforeSeq: number },
): Promise<ScanResult<ActivityRow>> {
  const { rows: table, owner: column } = names[kind]
  // The primary key has the order. For a short chain, PostgreSQL could read all rows and sort them.
  await sql.raw('set local enable_sort = off; set local enable_seqscan = off').execute(tx)
  const found = boundedScan({
    columns: sql`activity.seq`,
    from: sql`${table} as activity`,
    within: sql<boolean>`activity.${column} = ${owner} and activity.seq < ${beforeSeq}`,
    order: sql`activity.seq desc`,
    passes: allOf([
      ...(userId === undefined
        ? []
        : [sql<boolean>`activity.actor_type = 'user' and activity.actor_id = ${userId}`]),
      ...(from === undefined ? [] : [sql<boolean>`activity.at >= ${from}`]),
      ...(to === undefined ? [] : [sql<boolean>`activity.at < ${to}`]),
    ]),
    ...{ bound: scanLimit, limit },
  })
  const { rows } = await sql<{ seq: number; is_found: boolean }>`
    with ${found} select seq, true as is_found from found union all select seq, false from stop`.execute(tx)
  const seqs = rows.filter(({ is_found }) => is_found).map(({ seq }) => seq)
  const stop = rows.find(({ is_found }) => !is_found)?.seq
  return scanResultOf(
    await findRows(tx, kind, owner, seqs),
    limit,
    ({ seq }) => ({ id: seq, key: null }),
    stop === undefined ? null : { id: stop, key: null },
  )
}

/** Newest first. */
async function findRows(tx: ReadTx, kind: Kind, owner: number, seqs: number[]): Promise<ActivityRow[]> {
  if (seqs.length === 0) return []
  const { rows } = await sql<ActivityRow>`
    select ${columns(kind)} from ${names[kind].rows} as activity
     where activity.${names[kind].owner} = ${owner} and activity.seq = any(${seqs}::bigint[])
     order by activity.seq desc`.execute(tx)
  return rows
}

/** Oldest first, for verification. */
export async function listFrom(
  tx: ReadTx,
  kind: Kind,
  owner: number,
  { limit, afterSeq }: { limit: number; afterSeq: number },
): Promise<ActivityRow[]> {
  const { rows } = await sql<ActivityRow>`
    select ${columns(kind)} from ${names[kind].rows} as activity
     where activity.${names[kind].owner} = ${owner} and activity.seq > ${afterSeq}
     order by activity.seq limit ${limit}`.execute(tx)
  return rows
}

export interface HeadRow {
  owner: number
  seq: number
  hash: string
  purged_seq: number
  purged_hash: string
}

export async function listHeads(
  tx: ReadTx,
  kind: Kind,
  { limit, afterOwner, owner }: { limit: number; afterOwner: number; owner?: number },
): Promise<HeadRow[]> {
  const { owner: column, heads } = names[kind]
  const { rows } = await sql<HeadRow>`
    select ${column} as owner, seq, encode(hash, 'hex') as hash, purged_seq, encode(purged_hash, 'hex') as purged_hash
      from ${heads} where ${column} > ${afterOwner}
           ${owner === undefined ? sql`` : sql`and ${column} = ${owner}`}
     order by ${column} limit ${limit}`.execute(tx)
  return rows
}

export async function purgeRows(
  tx: OneStatement,
  kind: Kind,
  { days, most, atMost }: { days: number; most: number; atMost: number },
): Promise<number> {
  const { rows } = await sql<{ purged: number }>`
    select control.purge_activity(${kind}, make_interval(days => ${days}), ${most}, ${atMost}) as purged`.execute(
    tx,
  )
  return rows[0]?.purged ?? 0
}

/** Deletes an address from the personal data stored outside the chains. */
export async function deletePerson(tx: Tx, email: string): Promise<number> {
  let deleted = 0n
  for (const { people } of Object.values(names)) {
    const { numAffectedRows } = await sql`delete from ${people} where lower(email) = ${email}`.execute(tx)
    deleted += numAffectedRows ?? 0n
  }
  return Number(deleted)
}
