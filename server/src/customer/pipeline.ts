import type { OfferedPair } from '../core/domains/dkim-pairs.ts'
import { IdempotentRequest } from '../core/idempotency/idempotency.ts'
import { lockProject, type ProjectRow } from '../core/projects/projects.ts'
import type { Tx } from '../platform/db/db.ts'
import { type Answer, asAnswer } from '../platform/http/answer.ts'
import { comparesVersions, type Kind, successOfKind } from '../platform/http/kinds.ts'
import { etagOf, type IfMatch, requireVersion } from '../platform/http/versions.ts'
import { actorOf, type Caller, confirmed, type UserCaller } from './caller.ts'
import type { CustomerDeps, Mutation, Outcome, Query, UserMutation } from './operation.ts'

/**
 * A customer's mutation from its checked input to its answer, in one transaction of the project's.
 *
 * The project is locked first, by every one of them, and then the caller is looked at again: an operation that waited
 * does not go by a role or a key that ended meanwhile. Refusals come in this order: the project or the thing does not
 * exist (404), the request was answered before (idempotency), the version is not the one expected (412), the rules.
 */
export interface MutationRequest {
  params: Record<string, unknown>
  body: Record<string, unknown>
  ifMatch: IfMatch | undefined
  idempotencyKey: string | undefined
}

export async function perform(
  operation: Mutation,
  caller: Caller,
  { params, body, ifMatch, idempotencyKey }: MutationRequest,
  deps: CustomerDeps,
): Promise<Answer> {
  const { projectId } = caller
  const repeatable = repeatableAs(caller, projectId, operation.id, idempotencyKey, { params, body })
  const { look } = operation
  const inCell = () => deps.cellOf(projectId).customer.forProject(projectId)
  const seen = look && (await inCell().read((mail) => look(mail, { projectId, params, body })))
  const work = async (tx: Tx, pair: OfferedPair): Promise<Answer> => {
    await repeatable?.claim(tx)
    const project = await lockProject(tx, projectId)
    const present = await confirmed(tx, operation.id, caller)
    const target = await targetOf(operation, tx, project, params)
    const before = await repeatable?.recall(tx)
    if (before) return { ...before, isRepeated: true }
    if (comparesVersions(operation.kind)) requireVersion(ifMatch, target as { version: number })

    const domains = { ...deps.domains, pair }
    const outcome = await operation.run({
      ...{ tx, project, caller: present, deps, domains },
      ...{ params, body, target, seen },
    })
    const answer = answerOf(operation.kind, operation.answer !== undefined, outcome)
    await repeatable?.remember(tx, operation.revealsSecret ? { ...answer, body: null } : answer)
    return answer
  }
  return deps.domains.pairs.offer(operation.makesDkimKey === true, (pair) =>
    deps.customer.forProject(projectId).transaction((tx) => work(tx, pair)),
  )
}

const targetOf = async (
  { target }: Mutation,
  tx: Tx,
  project: ProjectRow,
  params: Record<string, unknown>,
): Promise<unknown> => (target ? target({ tx, project, params }) : project)

/** Of an Idempotency-Key that belongs to no project; ids begin at 1. */
const noProject = 0

export function performForUser(
  operation: UserMutation,
  caller: UserCaller,
  { body, idempotencyKey }: Pick<MutationRequest, 'body' | 'idempotencyKey'>,
  deps: CustomerDeps,
): Promise<Answer> {
  const repeatable = repeatableAs(caller, noProject, operation.id, idempotencyKey, { body })
  return deps.customer.forUser(caller.user.id).transaction(async (tx) => {
    await repeatable?.claim(tx)
    const before = await repeatable?.recall(tx)
    if (before) return { ...before, isRepeated: true }
    const outcome = await operation.run({ tx, user: caller.user, deps, body })
    const answer = answerOf(operation.kind, true, outcome)
    await repeatable?.remember(tx, answer)
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
  const { look } = operation
  const inCell = () => deps.cellOf(projectId).customer.forProject(projectId)
  const seen = look && (await inCell().read((mail) => look(mail, projectId, deps)))
  const { customer } = operation.reads === 'mail' ? deps.cellOf(projectId) : deps
  return customer.forProject(projectId).read(async (tx) => {
    const present = await confirmed(tx, operation.id, caller)
    return operation.run({ tx, projectId, caller: present, deps, params, query, seen })
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
  return new IdempotentRequest({ actor: actorOf(caller), projectId, operation, key }, request)
}

function answerOf(kind: Kind, hasBody: boolean, { answer, version, location }: Outcome<unknown>): Answer {
  const status = successOfKind[kind]
  return {
    ...(hasBody ? asAnswer(status, answer) : { status, body: null }),
    etag: version === null ? null : etagOf(version),
    location: location ?? null,
  }
}
