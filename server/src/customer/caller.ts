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

/** Who calls, and the project that they may speak of: authorisation yields the project. */
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

/** The person; for operations that no key may call. */
export function userOf(caller: Caller): User {
  if (caller.kind === 'key') throw new Error('an API key came where only members may')
  return caller.user
}

/** Of an operation that is about no project. */
export interface UserCaller {
  kind: 'user'
  user: User
}

/** Somebody who is known, but not in the project they ask about; for them it does not exist. */
export interface Stranger {
  kind: 'stranger'
  of: { user: User } | { key: ApiKeyRow }
}

/** As what a caller's keys for repetition are kept, and their requests counted. */
export const actorOf = (caller: Caller | UserCaller | Stranger): string => {
  const who = caller.kind === 'stranger' ? caller.of : caller
  return 'key' in who ? `key:${who.key.id}` : `user:${who.user.id}`
}

/**
 * The actor of an Idempotency-Key. What a key was answered before it was bound to a domain is not repeated to it: the
 * answer may be about another domain.
 */
export const idempotencyActorOf = (caller: Caller | UserCaller): string => {
  const domainId = caller.kind === 'key' ? caller.key.domain_id : null
  return domainId === null ? actorOf(caller) : `${actorOf(caller)}/domain:${domainId}`
}

/** The domain that a caller is bound to (domain-bindings.ts); null: none. */
export const boundDomain = (caller: Caller): number | null =>
  caller.kind === 'key' ? caller.key.domain_id : null

/**
 * The caller as they are now, in the operation's own transaction. Whoever changes the project holds its lock by now, as
 * does whoever changes members or keys: what was taken away while the lock was waited for is gone here.
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
