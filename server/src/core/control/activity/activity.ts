/**
 * Activity: customers' changes in a project, and a user's sign-in events. Each project and each user has a hash chain,
 * separate from the administrators' audit (core/control/audit), with the same canonical form:
 *
 *   hash of a row      = SHA-256(prev_hash ‖ canonical JSON of the row's other columns)
 *   digest of a person = SHA-256(salt ‖ canonical JSON of the other columns of …_activity_people)
 *
 * The row is written in the same transaction as the change. docs/decisions/0024-activity-chains.md lists the exceptions.
 */
import { randomBytes } from 'node:crypto'
import Type, { type Static } from 'typebox'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { continueScan, scanMs } from '../../shared/bounded-scan.ts'
import { newestFirst, pageOf, scanPage } from '../../shared/pages.ts'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'
import { mailAccountChange, type UserOperation } from '../access/account-changes.ts'
import { withAddresses, withoutAddresses } from '../audit/addresses.ts'
import { hashOf } from '../audit/chain.ts'
import {
  type ActivityFilter,
  type ActivityRow,
  admitAttempt,
  append,
  deletePerson,
  hasSucceeded,
  isRecorded,
  type Kind,
  listNewest,
  lockHead,
  purgeRows,
  scanNewest,
} from './activity.sql.ts'

export const actorTypes = ['user', 'api_key', 'administrator', 'system', 'unknown'] as const

export interface ActivityActor {
  type: (typeof actorTypes)[number]
  id: number | null
  email: string | null
  ip: string | null
  userAgent: string | null
}

/** Must not contain secrets. Can contain addresses, which are stored outside the chain. */
export interface ActivityChange {
  resource: string
  /** Null if the id would be an address. */
  id: string | number | null
  before: object | null
  after: object | null
}

export interface ActivityEntry<Operation extends string = string> {
  actor: ActivityActor
  requestId: string
  operation: Operation
  change: ActivityChange
}

export const system: ActivityActor = { type: 'system', id: null, email: null, ip: null, userAgent: null }

/** Locks the head of the project's chain until the transaction ends, so call it last. */
export const recordProjectActivity = (tx: Tx, projectId: number, entry: ActivityEntry): Promise<void> =>
  record(tx, 'project', projectId, entry)

/** Also mails the user that the ways to sign in have changed, if they have. */
export async function recordUserActivity(
  tx: Tx,
  userId: number,
  entry: ActivityEntry<UserOperation>,
): Promise<void> {
  await record(tx, 'user', userId, entry)
  await mailAccountChange(tx, userId, entry.operation)
}

/** Records a row relayed from the mail database, possibly more than once. Returns false if it is already recorded. */
export async function recordRelayedActivity(
  tx: Tx,
  projectId: number,
  entry: ActivityEntry & { at: string },
): Promise<boolean> {
  // Take the lock first to see the row of a concurrent relay.
  await lockHead(tx, 'project', projectId)
  if (await isRecorded(tx, projectId, entry.requestId)) return false
  await record(tx, 'project', projectId, entry)
  return true
}

/**
 * The maximum number of recorded attempts per hour per account. Further attempts are only counted, so an attacker cannot
 * fill the table.
 */
export const attemptsRecordedPerHour = 10

/**
 * Records an attempt that needs no session, up to the hourly limit. The first attempt with the correct password (`outcome`
 * is success) in an hour is always recorded, because otherwise ten wrong attempts would hide it.
 */
export async function recordAttempt(
  tx: Tx,
  userId: number,
  entry: ActivityEntry,
  outcome: 'success' | 'failure' = 'failure',
): Promise<void> {
  const { is_recorded, unrecorded } = await admitAttempt(tx, userId, attemptsRecordedPerHour)
  const { change } = entry
  if (!is_recorded && (outcome === 'failure' || (await hasSucceeded(tx, userId, entry.operation)))) return
  const after =
    unrecorded === 0 ? change.after : { ...change.after, attempts_not_recorded_before: unrecorded }
  await record(tx, 'user', userId, { ...entry, change: { ...change, after } })
}

async function record(
  tx: Tx,
  kind: Kind,
  owner: number,
  { actor, requestId, operation, change, at: relayedAt }: ActivityEntry & { at?: string },
): Promise<void> {
  const { seq: last, hash: prevHash, at } = await lockHead(tx, kind, owner)
  const position = { [`${kind}_id`]: owner, seq: last + 1 }
  const people: object[] = []
  const digestOf = (
    part: string,
    person: { email: string | null; ip: string | null; userAgent: string | null },
  ) => {
    const salt = randomBytes(16).toString('hex')
    const { email, ip, userAgent } = person
    const content = {
      ...position,
      part,
      email: storable(email),
      ip: storable(ip),
      user_agent: storable(userAgent?.slice(0, userAgentKept) ?? null),
    }
    people.push({ ...content, salt: `\\x${salt}` })
    return hashOf(salt, content)
  }
  const setAside = (value: object | null, path: string) =>
    withoutAddresses(value, path, (part, email) => digestOf(part, { email, ip: null, userAgent: null }))
  const content = {
    ...position,
    at: relayedAt ?? at,
    actor_type: actor.type,
    actor_id: actor.id,
    actor_digest: digestOf('actor', actor),
    request_id: requestId,
    operation,
    resource_type: change.resource,
    resource_id: change.id === null ? null : String(change.id),
    before: setAside(change.before, 'before'),
    after: setAside(change.after, 'after'),
  }
  const [prev_hash, hash] = [prevHash, hashOf(prevHash, content)]
  const binary = {
    actor_digest: `\\x${content.actor_digest}`,
    prev_hash: `\\x${prev_hash}`,
    hash: `\\x${hash}`,
  }
  await append(tx, kind, { ...content, ...binary }, people)
}

/** The maximum number of characters. A request can have 16 KiB of headers, and a chain has many rows. */
const userAgentKept = 512

/** The text as PostgreSQL returns it. PostgreSQL cannot store NUL or an unpaired surrogate. */
const storable = (text: string | null): string | null =>
  text === null ? null : text.toWellFormed().replaceAll('\0', '\uFFFD')

const Values = nullable(Type.Object({}, { additionalProperties: true }))

export const Activity = Type.Object(
  {
    id: Type.Integer({ description: 'The sequence number in the chain, without gaps.' }),
    at: Timestamp,
    actor: Type.Object(
      {
        type: oneOf(actorTypes),
        id: nullable(Type.Integer({ description: 'The id of the user or API key.' })),
        email: nullable(Type.String()),
        ip: nullable(Type.String()),
        user_agent: nullable(Type.String()),
      },
      { additionalProperties: false, description: 'Fields are null if they are unknown or were erased.' },
    ),
    request_id: Type.String(),
    operation: Type.String({ description: 'The id of the operation, such as `domains.create`.' }),
    resource_type: Type.String(),
    resource_id: nullable(Type.String()),
    before: Values,
    after: Values,
    prev_hash: Type.String({ description: 'SHA-256, hexadecimal.' }),
    hash: Type.String({ description: 'SHA-256, hexadecimal.' }),
  },
  { title: 'Activity', additionalProperties: false },
)

export function activityView(row: ActivityRow): Static<typeof Activity> {
  const actor = row.people.find(({ part }) => part === 'actor')
  const addresses = new Map(row.people.map(({ part, email }) => [part, email]))
  return {
    id: row.seq,
    at: new Date(row.at).toISOString(),
    actor: {
      type: row.actor_type as ActivityActor['type'],
      id: row.actor_id,
      email: actor?.email ?? null,
      ip: actor?.ip ?? null,
      user_agent: actor?.user_agent ?? null,
    },
    request_id: row.request_id,
    operation: row.operation,
    resource_type: row.resource_type,
    resource_id: row.resource_id,
    before: withAddresses(row.before, 'before', addresses),
    after: withAddresses(row.after, 'after', addresses),
    prev_hash: row.prev_hash,
    hash: row.hash,
  }
}

/** One page of a chain, newest first. */
export const activityPage = (
  tx: ReadTx,
  kind: Kind,
  owner: number,
  query: { limit?: number; cursor?: string },
) =>
  newestFirst(
    query,
    async ({ limit, beforeId }): Promise<(ActivityRow & { id: number })[]> => {
      const rows = await listNewest(tx, kind, owner, { limit, beforeSeq: beforeId })
      return rows.map((row) => ({ ...row, id: row.seq }))
    },
    (row: ActivityRow & { id: number }) => activityView(row),
  )

/** One page of the matching rows of a chain, newest first. */
export async function activitySearch(
  tx: ReadTx,
  kind: Kind,
  owner: number,
  { limit: wanted, cursor, ...filter }: ActivityFilter & { limit?: number; cursor?: string },
) {
  const deadline = performance.now() + scanMs
  const { limit, lastId = Number.MAX_SAFE_INTEGER } = pageOf({
    ...(wanted !== undefined && { limit: wanted }),
    ...(cursor !== undefined && { cursor }),
  })
  const scan = (beforeSeq: number, rows: number) =>
    scanNewest(tx, kind, owner, filter, { limit: rows, beforeSeq })
  const first = await scan(lastId, limit)
  return scanPage(await continueScan(first, limit, deadline, ({ id }, rows) => scan(id, rows)), activityView)
}

/** The maximum number of rows per chain. Prevents a customer from filling the database. */
export const activityKept = { project: 50_000, user: 10_000 } as const

/** Deletes one batch and returns the number of rows. */
export const purgeActivity =
  (kind: Kind, days: number) =>
  (tx: OneStatement): Promise<number> =>
    purgeRows(tx, kind, { days, most: activityKept[kind], atMost: purgedAtOnce })

/** Erases an address from the personal data stored outside the chains. Returns the number of rows. */
export const eraseFromActivity = (tx: Tx, email: string): Promise<number> =>
  deletePerson(tx, email.toLowerCase())
