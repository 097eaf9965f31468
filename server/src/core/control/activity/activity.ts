import { randomBytes } from 'node:crypto'
import Type, { type Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { newestFirst } from '../../shared/pages.ts'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'
import { withAddresses, withoutAddresses } from '../audit/addresses.ts'
import { hashOf } from '../audit/chain.ts'
import {
  type ActivityRow,
  admitAttempt,
  append,
  deletePerson,
  hasSucceeded,
  isRecorded,
  type Kind,
  listNewest,
  lockEnd,
  purgeRows,
} from './activity.sql.ts'

/**
 * What customers do in a project, and what happens to a user's account: a hash chain for each project and one for each
 * user, apart from the administrators' audit (core/control/audit), with the same canonical form:
 *
 *   hash of a row      = SHA-256(prev_hash ‖ canonical JSON of the row's other columns)
 *   digest of a person = SHA-256(salt ‖ canonical JSON of the other columns of …_activity_people)
 *
 * The row is written in the transaction of the act. docs/decisions/0024-activity-chains.md says where that is not so.
 */
export const actorTypes = ['user', 'api_key', 'administrator', 'system', 'unknown'] as const

export interface ActivityActor {
  type: (typeof actorTypes)[number]
  id: number | null
  email: string | null
  ip: string | null
  userAgent: string | null
}

/** Without secrets. Addresses may be in it: they are set aside here. */
export interface ActivityChange {
  resource: string
  /** Null where it would be an address. */
  id: string | number | null
  before: object | null
  after: object | null
}

export interface ActivityEntry {
  actor: ActivityActor
  requestId: string
  operation: string
  change: ActivityChange
}

export const system: ActivityActor = { type: 'system', id: null, email: null, ip: null, userAgent: null }

/** Locks the end of the project's chain until the transaction ends: call it last. */
export const recordProjectActivity = (tx: Tx, projectId: number, entry: ActivityEntry): Promise<void> =>
  record(tx, 'project', projectId, entry)

export const recordUserActivity = (tx: Tx, userId: number, entry: ActivityEntry): Promise<void> =>
  record(tx, 'user', userId, entry)

/** Of what the mail side has told, which may come twice. False: it is there already. */
export async function recordRelayedActivity(
  tx: Tx,
  projectId: number,
  entry: ActivityEntry & { at: string },
): Promise<boolean> {
  // The lock comes first, so that another relay of the same row is seen.
  await lockEnd(tx, 'project', projectId)
  if (await isRecorded(tx, projectId, entry.requestId)) return false
  await record(tx, 'project', projectId, entry)
  return true
}

/** So many attempts at one account have a row in an hour; the others are counted. A stranger fills no table. */
export const attemptsRecordedPerHour = 10

/**
 * An attempt that anybody can make: recorded while there are few of them. One with the right password (`outcome` is
 * success) has a row in each hour all the same, or ten wrong ones before it would hide it.
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
  { actor, requestId, operation, change, at: told }: ActivityEntry & { at?: string },
): Promise<void> {
  const { seq: last, hash: prevHash, at } = await lockEnd(tx, kind, owner)
  const place = { [`${kind}_id`]: owner, seq: last + 1 }
  const people: object[] = []
  const digestOf = (
    part: string,
    person: { email: string | null; ip: string | null; userAgent: string | null },
  ) => {
    const salt = randomBytes(16).toString('hex')
    const { email, ip, userAgent } = person
    const content = {
      ...place,
      part,
      email: storable(email),
      ip: storable(ip),
      user_agent: storable(userAgent?.slice(0, userAgentKept) ?? null),
    }
    people.push({ ...content, salt: `\\x${salt}` })
    return hashOf(salt, content)
  }
  const aside = (value: object | null, path: string) =>
    withoutAddresses(value, path, (part, email) => digestOf(part, { email, ip: null, userAgent: null }))
  const content = {
    ...place,
    at: told ?? at,
    actor_type: actor.type,
    actor_id: actor.id,
    actor_digest: digestOf('actor', actor),
    request_id: requestId,
    operation,
    resource_type: change.resource,
    resource_id: change.id === null ? null : String(change.id),
    before: aside(change.before, 'before'),
    after: aside(change.after, 'after'),
  }
  const [prev_hash, hash] = [prevHash, hashOf(prevHash, content)]
  const binary = {
    actor_digest: `\\x${content.actor_digest}`,
    prev_hash: `\\x${prev_hash}`,
    hash: `\\x${hash}`,
  }
  await append(tx, kind, { ...content, ...binary }, people)
}

/** Characters. A request has 16 KiB of headers, and a chain has many rows: nobody fills the database with this one. */
const userAgentKept = 512

/** As PostgreSQL will give it back: it stores neither NUL nor half of a surrogate pair. */
const storable = (text: string | null): string | null =>
  text === null ? null : text.toWellFormed().replaceAll('\0', '\uFFFD')

const Values = nullable(Type.Object({}, { additionalProperties: true }))

export const Activity = Type.Object(
  {
    id: Type.Integer({ description: 'The number in the chain, without gaps.' }),
    at: Timestamp,
    actor: Type.Object(
      {
        type: oneOf(actorTypes),
        id: nullable(Type.Integer({ description: 'Of the user or the API key.' })),
        email: nullable(Type.String()),
        ip: nullable(Type.String()),
        user_agent: nullable(Type.String()),
      },
      { additionalProperties: false, description: 'Null where it is unknown or was erased.' },
    ),
    request_id: Type.String(),
    operation: Type.String(),
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

/** A page of a chain, newest first. */
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

/** Rows of one chain at most: whoever is let in cannot fill the database. */
export const activityKept = { project: 50_000, user: 10_000 } as const

/** One step; how many rows went. */
export const purgeActivity =
  (kind: Kind, days: number) =>
  (tx: Tx): Promise<number> =>
    purgeRows(tx, kind, { days, most: activityKept[kind], atMost: purgedAtOnce })

/** Forgets what is kept beside the chains under an address. How many rows went. */
export const eraseFromActivity = (tx: Tx, email: string): Promise<number> =>
  deletePerson(tx, email.toLowerCase())
