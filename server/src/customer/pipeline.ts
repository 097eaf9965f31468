import { recordProjectActivity, recordUserActivity } from '../core/control/activity/activity.ts'
import { beyond, limitExceeded } from '../core/control/caps/caps.ts'
import type { OfferedKeyPair, WantedKeyPair } from '../core/control/domains/dkim-key-pool.ts'
import { countDkimKeys } from '../core/control/domains/dkim-keys.ts'
import { findTarget, IdempotentRequest } from '../core/control/idempotency/idempotency.ts'
import { lockProject, type ProjectRow } from '../core/control/projects/projects.ts'
import { bindToDomain, type ReadTx, type Tx } from '../platform/db/db.ts'
import { comparesVersions, type Kind, successOfKind } from '../platform/http/kinds.ts'
import { asResponse, type HttpResponse } from '../platform/http/response.ts'
import { etagOf, type IfMatch, requireVersion } from '../platform/http/versions.ts'
import { entryOf, type Requested } from './activity-entry.ts'
import { boundDomain, type Caller, confirmed, idempotencyActorOf, type UserCaller } from './caller.ts'
import { dkimKeysRemedy } from './limits.ts'
import {
  type CustomerDeps,
  type Mutation,
  type MutationResult,
  type Query,
  type UserMutation,
  unchanged,
} from './operation.ts'

/**
 * A customer's mutation from its checked input to its answer, in one transaction of the project's.
 *
 * The project is locked first, by every one of them, and then the caller is looked at again: an operation that waited
 * does not go by a role or a key that ended meanwhile. Refusals come in this order: the project or the thing does not
 * exist (404), the request was answered before (idempotency), the version is not the one expected (412), the rules.
 *
 * What changes something writes its row of the project's activity in that transaction: either both are there or neither.
 */
export interface MutationRequest extends Requested {
  params: Record<string, unknown>
  body: Record<string, unknown>
  ifMatch: IfMatch | undefined
  idempotencyKey: string | undefined
}

export async function perform(
  operation: Mutation,
  caller: Caller,
  request: MutationRequest,
  deps: CustomerDeps,
): Promise<HttpResponse> {
  const { params, body, ifMatch, idempotencyKey } = request
  const { projectId } = caller
  const repeatable = repeatableAs(caller, projectId, operation.id, idempotencyKey, { params, body })
  const { preload } = operation
  const inCell = () => deps.cellOf(projectId).customer.forProject(projectId)
  const preloaded = preload && (await inCell().read((mail) => preload(mail, { projectId, params, body })))
  const work = async (tx: Tx, pair: OfferedKeyPair): Promise<HttpResponse> => {
    await repeatable?.claim(tx)
    const project = await lockProject(tx, projectId)
    const { present, domainId } = await confirmedAndBound(tx, operation.id, caller)
    const deleting = operation.kind === 'delete' ? repeatable : undefined
    const find = () => targetOf(operation, { tx, project, domainId, params })
    const found = await findTarget(find, tx, deleting)
    const before = found.deletion ?? (await repeatable?.findResponse(tx))
    if (before) return { ...before, isRepeated: true }
    const { target } = found
    if (comparesVersions(operation.kind)) requireVersion(ifMatch, target as { version: number })

    const domains = { ...deps.domains, pair }
    const outcome = await operation.run({
      ...{ tx, project, domainId, caller: present, deps, domains },
      ...{ params, body, target, preloaded },
    })
    const answer = answerOf(operation.kind, operation.answer !== undefined, outcome)
    await repeatable?.storeResponse(tx, operation.revealsSecret ? { ...answer, body: null } : answer)
    // Last, because the end of the project's chain stays locked until the commit.
    if (outcome.activity !== unchanged) {
      const entry = entryOf(operation.id, { ...request, caller: present }, outcome.activity)
      await recordProjectActivity(tx, projectId, entry)
    }
    return answer
  }
  const wanted = operation.makesDkimKey === true && (await wantedPair(projectId, deps))
  return deps.domains.pairs.offer(wanted, (pair) =>
    deps.customer.forProject(projectId).transaction((tx) => work(tx, pair)),
  )
}

/** A project that has made all keys of today has none made for nothing; whoever needs one is told in its turn. */
async function wantedPair(projectId: number, { customer, caps }: CustomerDeps): Promise<WantedKeyPair> {
  const made = await customer.forProject(projectId).read((tx) => countDkimKeys(tx, projectId))
  const exception = beyond('max_dkim_keys_per_day', caps.max_dkim_keys_per_day, made + 1)
  return { projectId, refusal: exception ? limitExceeded(exception, dkimKeysRemedy) : undefined }
}

const targetOf = async (
  { target }: Mutation,
  call: { tx: Tx; project: ProjectRow; domainId: number | null; params: Record<string, unknown> },
): Promise<unknown> => (target ? target(call) : call.project)

/** The caller as they are now, and the transaction bound to their domain, if they are. */
async function confirmedAndBound(
  tx: ReadTx,
  operation: Mutation['id'],
  caller: Caller,
): Promise<{ present: Caller; domainId: number | null }> {
  const present = await confirmed(tx, operation, caller)
  const domainId = boundDomain(present)
  if (domainId !== null) await bindToDomain(tx, domainId)
  return { present, domainId }
}

/** Of an Idempotency-Key that belongs to no project; ids begin at 1. */
const noProject = 0

export function performForUser(
  operation: UserMutation,
  caller: UserCaller,
  request: Pick<MutationRequest, 'body' | 'idempotencyKey'> & Requested,
  deps: CustomerDeps,
): Promise<HttpResponse> {
  const { body, idempotencyKey } = request
  const repeatable = repeatableAs(caller, noProject, operation.id, idempotencyKey, { body })
  return deps.customer.forUser(caller.user.id).transaction(async (tx) => {
    await repeatable?.claim(tx)
    const before = await repeatable?.findResponse(tx)
    if (before) return { ...before, isRepeated: true }
    const outcome = await operation.run({ tx, user: caller.user, deps, body })
    const answer = answerOf(operation.kind, true, outcome)
    await repeatable?.storeResponse(tx, answer)
    if (outcome.activity !== unchanged) {
      const entry = entryOf(operation.id, { ...request, caller }, outcome.activity)
      await recordProjectActivity(tx, outcome.projectId, entry)
      if (operation.isOfUser) await recordUserActivity(tx, caller.user.id, entry)
    }
    return answer
  })
}

export async function answerQuery(
  operation: Query,
  caller: Caller,
  { params, query }: { params: Record<string, unknown>; query: Record<string, unknown> },
  deps: CustomerDeps,
): Promise<{ answer: unknown; version?: number }> {
  const { projectId } = caller
  const { preload } = operation
  const inCell = () => deps.cellOf(projectId).customer.forProject(projectId)
  const preloaded = preload && (await inCell().read((mail) => preload(mail, projectId, deps)))
  const { customer } = operation.reads === 'mail' ? deps.cellOf(projectId) : deps
  return customer.forProject(projectId).read(async (tx) => {
    const { present, domainId } = await confirmedAndBound(tx, operation.id, caller)
    return operation.run({ tx, projectId, domainId, caller: present, deps, params, query, preloaded })
  })
}

function repeatableAs(
  caller: Caller | UserCaller,
  projectId: number,
  operation: string,
  key: string | undefined,
  request: object,
): IdempotentRequest | undefined {
  if (key === undefined) return undefined
  return new IdempotentRequest({ actor: idempotencyActorOf(caller), projectId, operation, key }, request)
}

function answerOf(
  kind: Kind,
  hasBody: boolean,
  { answer, version, location }: MutationResult<unknown>,
): HttpResponse {
  const status = successOfKind[kind]
  return {
    ...(hasBody ? asResponse(status, answer) : { status, body: null }),
    etag: version === null ? null : etagOf(version),
    location: location ?? null,
  }
}
