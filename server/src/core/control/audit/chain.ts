/**
 * Hashes of the audit log. An independent verifier needs SHA-256 and canonical JSON (RFC 8785):
 *
 *   hash of a row        = SHA-256(prev_hash ‖ canonical JSON of the row's other columns)
 *   hash of a checkpoint = SHA-256(prev_hash ‖ canonical JSON of {id, at, heads, key_id})
 *   digest of a person   = SHA-256(salt ‖ canonical JSON of the other columns of audit_people)
 *
 * In the JSON, binary columns are strings of lower-case hexadecimal digits. UUIDs and transaction ids are strings. Timestamps
 * are strings such as 2026-11-14T09:30:00.123456Z, without trailing zeros in the fraction.
 */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'

/** `policy` and `service_account` are reserved. */
export const actorKinds = ['person', 'shell', 'policy', 'service_account', 'system'] as const
export type ActorKind = (typeof actorKinds)[number]

export interface RowContent {
  chain: number
  seq: number
  id: number
  at: string
  actor_kind: ActorKind
  actor_id: number
  actor_digest: string
  subject_digest: string | null
  request_id: string
  operation: string
  project_id: number | null
  resource_type: string
  resource_id: string
  reason: string | null
  before: object | null
  after: object | null
  related: object[] | null
  limit_exception: object | null
  bulk_id: string | null
  xid: string
}

export interface PersonContent {
  audit_id: number
  /** `actor`, `subject`, or the path of an address in the row (addresses.ts). */
  part: string
  project_id: number | null
  email: string | null
  name: string | null
  ip: string | null
  user_agent: string | null
}

/** The last row of a chain, as listed in a checkpoint. */
export interface Head {
  chain: number
  seq: number
  hash: string
}

export interface CheckpointContent {
  id: number
  at: string
  heads: Head[]
  key_id: string
}

/** The prev_hash of the first row of a chain and of the first checkpoint. */
export const genesis = '00'.repeat(32)

/** Also used by the activity chains (core/control/activity). */
export const hashOf = (first: string, content: object): string =>
  createHash('sha256')
    .update(first, 'hex')
    .update(canonicalize(content) ?? '')
    .digest('hex')

export const rowHash = (prevHash: string, content: RowContent): string => hashOf(prevHash, content)

export const personDigest = (salt: string, content: PersonContent): string => hashOf(salt, content)

export const checkpointHash = (prevHash: string, content: CheckpointContent): string =>
  hashOf(prevHash, content)
