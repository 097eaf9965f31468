import { randomBytes } from 'node:crypto'
import type { Tx } from '../../../platform/db/db.ts'
import { withoutAddresses } from './addresses.ts'
import { type PersonContent, personDigest, rowHash } from './chain.ts'
import { appendRow, insertHead, lockHead } from './record.sql.ts'

/** Who acts. */
export interface Actor {
  userId: number
  email: string | null
  ip: string | null
  userAgent: string | null
}

/** Whoever sits at the server's own shell: a `postern` command. */
export const shell = (userAgent: string): Actor => ({ userId: 0, email: null, ip: null, userAgent })

/** A plain object of whatever JSON can hold. */
export type Json = object

export interface Change {
  resource: string
  id: string | number
  before: Json | null
  after: Json | null
}

export interface AuditEntry {
  actor: Actor
  requestId: string
  operation: string
  projectId: number | null
  /** What the act was about. */
  change: Change
  /** What else it changed. */
  related: Change[]
  reason: string | null
  /** Which customer limit an administrator went past. */
  limitException: { limit: string; value: number; count: number } | null
  /** The person acted upon (a member, a user): personal data, kept out of `before` and `after`. */
  subject: { email: string; name: string | null } | null
}

/** The chain of what belongs to no project. */
const globalChain = 0

/**
 * Appends the row to its chain. The head of the chain is locked until the transaction ends, so call this
 * last: whoever appends to the same chain waits. Secrets must be out of `before` and `after` already; addresses are set
 * aside here.
 */
export async function recordAudit(tx: Tx, entry: AuditEntry): Promise<void> {
  const chain = entry.projectId ?? globalChain
  const place = (await lockHead(tx, chain)) ?? (await beginChain(tx, chain))
  const people = peopleOf(entry, place.id)
  const aside = <T>(value: T, path: string) =>
    withoutAddresses(value, path, (part, email) => {
      const beside = personOf(entry.projectId, place.id, {
        part,
        email,
        name: null,
        ip: null,
        user_agent: null,
      })
      people.push(beside)
      return beside.digest
    })
  const digestOf = (part: PersonContent['part']) => people.find(({ person }) => person.part === part)?.digest
  const { resource, id, before, after } = entry.change
  const content = {
    chain,
    seq: place.seq + 1,
    id: place.id,
    at: place.at,
    actor_id: entry.actor.userId,
    actor_digest: digestOf('actor') ?? '',
    subject_digest: digestOf('subject') ?? null,
    request_id: entry.requestId,
    operation: entry.operation,
    project_id: entry.projectId,
    resource_type: resource,
    resource_id: String(id),
    reason: storable(entry.reason),
    before: aside(before, 'before'),
    after: aside(after, 'after'),
    related: entry.related.length > 0 ? aside(entry.related, 'related') : null,
    limit_exception: entry.limitException,
    xid: place.xid,
  }
  const hash = rowHash(place.hash, content)
  await appendRow(
    tx,
    { ...content, prev_hash: place.hash, hash },
    people.map(({ person, salt }) => ({ ...person, salt })),
  )
}

async function beginChain(tx: Tx, chain: number) {
  await insertHead(tx, chain)
  const place = await lockHead(tx, chain)
  if (!place) throw new Error(`the head of audit chain ${chain} is gone`)
  return place
}

function peopleOf({ actor, subject, projectId }: AuditEntry, auditId: number) {
  const parts: Omit<PersonContent, 'audit_id' | 'project_id'>[] = [
    { part: 'actor', email: actor.email, name: null, ip: actor.ip, user_agent: actor.userAgent },
  ]
  if (subject) parts.push({ part: 'subject', ...subject, ip: null, user_agent: null })
  return parts.map((part) => personOf(projectId, auditId, part))
}

function personOf(
  projectId: number | null,
  auditId: number,
  { part, email, name, ip, user_agent }: Omit<PersonContent, 'audit_id' | 'project_id'>,
) {
  const person = {
    audit_id: auditId,
    part,
    project_id: projectId,
    email: storable(email),
    name: storable(name),
    ip: storable(ip),
    user_agent: storable(user_agent),
  }
  const salt = randomBytes(16).toString('hex')
  return { person, salt, digest: personDigest(salt, person) }
}

/** As PostgreSQL will give it back: it stores neither NUL nor half of a surrogate pair. */
const storable = (text: string | null): string | null =>
  text === null ? null : text.toWellFormed().replaceAll('\0', '\uFFFD')
