import type { User } from '../core/control/access/verify-access-token.ts'
import type { ApiKeyRow } from '../core/control/api-keys/api-keys.ts'
import { requireActiveKey } from '../core/control/api-keys/authenticate.ts'
import { memberRole } from '../core/control/members/members.ts'
import type { Role } from '../core/control/members/wire.ts'
import { missingProject } from '../core/control/projects/projects.ts'
import type { ReadTx } from '../platform/db/db.ts'
import { requireBinding } from './domain-bindings.ts'
import { type OperationId, requireRole } from './roles.ts'
import { requireScope } from './scopes.ts'

/** An authorised caller. The project is determined during authorisation. */
export interface MemberCaller {
  kind: 'member'
  user: User
  role: Role
  projectId: number
}

export interface KeyCaller {
  kind: 'key'
  key: ApiKeyRow
  projectId: number
}

export type Caller = MemberCaller | KeyCaller

/** For operations that no API key can call. */
function memberOf(caller: Caller): MemberCaller {
  if (caller.kind === 'key') throw new Error('an API key called an operation for members only')
  return caller
}

export const userOf = (caller: Caller): User => memberOf(caller).user
export const roleOf = (caller: Caller): Role => memberOf(caller).role

/** The caller of an operation outside any project. */
export interface UserCaller {
  kind: 'user'
  user: User
}

/**
 * An authenticated caller without access to the requested project. The response is the same as for a project that does not
 * exist.
 */
export interface Stranger {
  kind: 'stranger'
  of: { user: User } | { key: ApiKeyRow }
}

/** Identifies the caller in Idempotency-Keys and rate limits. */
export const actorOf = (caller: Caller | UserCaller | Stranger): string => {
  const who = caller.kind === 'stranger' ? caller.of : caller
  return 'key' in who ? `key:${who.key.id}` : `user:${who.user.id}`
}

/**
 * The actor of an Idempotency-Key. Responses that were stored before an API key was bound to a domain are not replayed to
 * the key, because they may concern another domain.
 */
export const idempotencyActorOf = (caller: Caller | UserCaller): string => {
  const domainId = caller.kind === 'key' ? caller.key.domain_id : null
  return domainId === null ? actorOf(caller) : `${actorOf(caller)}/domain:${domainId}`
}

/** The domain that the caller is bound to (domain-bindings.ts), or null. */
export const boundDomain = (caller: Caller): number | null =>
  caller.kind === 'key' ? caller.key.domain_id : null

/**
 * Checks the caller again, in the operation's transaction. A mutation holds the project's lock at this point, and so does
 * every change to members or API keys, so a role or key that was revoked while the request waited is rejected here.
 */
export async function confirmed(tx: ReadTx, operation: OperationId, caller: Caller): Promise<Caller> {
  const { projectId } = caller
  if (caller.kind === 'key') {
    const key = await requireActiveKey(tx, caller.key)
    requireScope(operation, key.scopes)
    requireBinding(operation, key)
    return { ...caller, key }
  }
  const role = await memberRole(tx, projectId, caller.user.id)
  if (role === undefined) throw missingProject(projectId)
  requireRole(operation, role)
  return { ...caller, role }
}
