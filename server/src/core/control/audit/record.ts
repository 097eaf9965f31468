import { randomBytes } from 'node:crypto'
import type { Tx } from '../../../platform/db/db.ts'
import { isTextPath, withoutAddresses } from './addresses.ts'
import { type ActorKind, type PersonContent, personDigest, rowHash } from './chain.ts'
import { appendRow, insertHead, lockHead } from './record.sql.ts'

/** The actor of an operation. */
export interface Actor {
  kind: ActorKind
  /** 0 for the shell and the system. */
  id: number
  email: string | null
  ip: string | null
  userAgent: string | null
}

/** A `postern` command on the server. */
export const shell = (userAgent: string): Actor => ({
  kind: 'shell',
  id: 0,
  email: null,
  ip: null,
  userAgent,
})

/** A worker that applies an expiry. */
export const system: Actor = { kind: 'system', id: 0, email: null, ip: null, userAgent: null }

/** A plain object that can be written as JSON. */
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
  /** The changed resource. */
  change: Change
  /** Other resources that the operation changed. */
  related: Change[]
  reason: string | null
  /** The customer limit that an administrator exceeded. */
  limitException: { limit: string; value: number; count: number } | null
  /** The user or member that the operation changes. Their personal data is stored here and not in `before` and `after`. */
  subject: { email: string; name: string | null } | null
  /** The bulk action that the entry is part of. */
  bulkId?: string | undefined
}

/** The chain for changes that do not belong to a project. */
const globalChain = 0

/**
 * Appends a row to its chain. Call it last in the transaction: the head of the chain is locked until the transaction ends,
 * and other appends to the chain wait. `before` and `after` must not contain secrets. Addresses and texts are stored separately.
 * Returns the row's id.
 */
export async function recordAudit(tx: Tx, entry: AuditEntry): Promise<number> {
  const chain = entry.projectId ?? globalChain
  const head = (await lockHead(tx, chain)) ?? (await beginChain(tx, chain))
  const people = peopleOf(entry, head.id)
  const setAside = <T>(value: T, path: string) =>
    withoutAddresses(value, path, (part, text) => {
      const stored = personOf(entry.projectId, head.id, {
        part,
        ...(isTextPath(part) ? { email: null, name: text } : { email: text, name: null }),
        ip: null,
        user_agent: null,
      })
      people.push(stored)
      return stored.digest
    })
  const digestOf = (part: PersonContent['part']) => people.find(({ person }) => person.part === part)?.digest
  const { resource, id, before, after } = entry.change
  const content = {
    chain,
    seq: head.seq + 1,
    id: head.id,
    at: head.at,
    actor_kind: entry.actor.kind,
    actor_id: entry.actor.id,
    actor_digest: digestOf('actor') ?? '',
    subject_digest: digestOf('subject') ?? null,
    request_id: entry.requestId,
    operation: entry.operation,
    project_id: entry.projectId,
    resource_type: resource,
    resource_id: String(id),
    reason: storable(entry.reason),
    before: setAside(before, 'before'),
    after: setAside(after, 'after'),
    related: entry.related.length > 0 ? setAside(entry.related, 'related') : null,
    limit_exception: entry.limitException,
    // As PostgreSQL returns it, so that the row verifies.
    bulk_id: entry.bulkId?.toLowerCase() ?? null,
    xid: head.xid,
  }
  const hash = rowHash(head.hash, content)
  await appendRow(
    tx,
    { ...content, prev_hash: head.hash, hash },
    people.map(({ person, salt }) => ({ ...person, salt })),
  )
  return head.id
}

async function beginChain(tx: Tx, chain: number) {
  await insertHead(tx, chain)
  const head = await lockHead(tx, chain)
  if (!head) throw new Error(`audit chain ${chain} has no head`)
  return head
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

/** The text as PostgreSQL stores it. PostgreSQL supports neither NUL nor unpaired surrogates. */
const storable = (text: string | null): string | null =>
  text === null ? null : text.toWellFormed().replaceAll('\0', '\uFFFD')
