import type { Actor } from '../core/control/audit/record.ts'
import { recordAudit } from '../core/control/audit/record.ts'
import { limitExceeded } from '../core/control/caps/caps.ts'
import type { OfferedKeyPair } from '../core/control/domains/dkim-key-pool.ts'
import { IdempotentRequest } from '../core/control/idempotency/idempotency.ts'
import type { Tx } from '../platform/db/db.ts'
import { PosternError } from '../platform/errors.ts'
import { successOfKind } from '../platform/http/kinds.ts'
import { asResponse, type HttpResponse } from '../platform/http/response.ts'
import { etagOf, type IfMatch, requireVersion } from '../platform/http/versions.ts'
import { type AdminDeps, type Audited, type Mutation, type MutationResult, unchanged } from './operation.ts'
import { previewOf } from './preview.ts'
import { reasonOf } from './reason.ts'
import { honoursIfMatch, needsReasonAlways } from './schema.ts'

/**
 * A mutation from its checked input to its answer, in one transaction.
 *
 * Refusals come in this order: the thing does not exist (404), the request was answered before (idempotency),
 * the version is not the one expected (412), the rules (409, 422). Whatever fails, nothing is written; what is
 * written has its audit row.
 */
export interface MutationRequest {
  actor: Actor
  requestId: string
  params: Record<string, unknown>
  body: Record<string, unknown> & { reason?: string }
  ifMatch: IfMatch | undefined
  idempotencyKey: string | undefined
  isDryRun: boolean
}

export async function perform(
  operation: Mutation,
  request: MutationRequest,
  deps: AdminDeps,
): Promise<HttpResponse> {
  const { db, vault, domains, endpoints, orders, caps } = deps
  const { params, isDryRun } = request
  const { reason: givenReason, ...body } = request.body
  const reason = reasonOf(givenReason)
  const repeatable = isDryRun ? undefined : idempotentRequest(operation, request)
  const seen = await lookAhead(operation, request, body, deps)

  const work = async (tx: Tx, pair: OfferedKeyPair): Promise<HttpResponse> => {
    await repeatable?.claim(tx)
    const target = await operation.target(tx, params, seen)
    const before = await repeatable?.recall(tx)
    if (before) return { ...before, isRepeated: true }
    if (honoursIfMatch(operation)) requireVersion(request.ifMatch, target as { version: number })
    if (!isDryRun && reason === null && needsReasonAlways(operation)) throw reasonRequired()

    const outcome = await operation.run({
      tx,
      vault,
      domains: { ...domains, pair },
      endpoints,
      orders,
      caps,
      actorId: request.actor.userId,
      requestId: request.requestId,
      params,
      body,
      target,
      seen,
      reason,
    })
    if (isDryRun)
      return asResponse(200, await previewOf(operation.id, outcome, needsReason(operation, outcome)))

    if (reason === null) refuseWithoutReason(outcome)
    if (outcome.audit !== unchanged) {
      await recordAudit(tx, {
        actor: request.actor,
        requestId: request.requestId,
        operation: operation.id,
        projectId: outcome.audit.projectId,
        change: outcome.audit.change,
        related: outcome.audit.related ?? [],
        reason,
        limitException: outcome.audit.limitException ?? null,
        subject: outcome.audit.subject ?? null,
      })
    }
    const answer = answerOf(operation, outcome)
    await repeatable?.remember(tx, operation.revealsSecret ? { ...answer, body: null } : answer)
    return answer
  }
  const wanted = operation.makesDkimKey === true && { projectId: params['project_id'] as number }
  return domains.pairs.offer(wanted, (pair) =>
    isDryRun ? db.dryRun((tx) => work(tx, pair)) : db.transaction((tx) => work(tx, pair)),
  )
}

async function lookAhead(
  operation: Mutation,
  { params, isDryRun }: MutationRequest,
  body: Record<string, unknown>,
  { mailOf }: AdminDeps,
): Promise<unknown> {
  const { look, looksFor } = operation
  if (!look || (looksFor === 'preview' && !isDryRun)) return undefined
  try {
    return await mailOf(params['project_id'] as number).read((mail) => look(mail, params, body))
  } catch (error) {
    // What is about to be done can be done all the same.
    const isAway = error instanceof PosternError && error.code === 'unavailable'
    if (looksFor === 'preview' && isAway) return undefined
    throw error
  }
}

function idempotentRequest(
  { id }: Mutation,
  { actor, idempotencyKey, params, body }: MutationRequest,
): IdempotentRequest | undefined {
  if (idempotencyKey === undefined) return undefined
  return new IdempotentRequest(
    { actor: `admin:${actor.userId}`, projectId: null, operation: id, key: idempotencyKey },
    { params, body },
  )
}

function answerOf(operation: Mutation, outcome: MutationResult<unknown>): HttpResponse {
  const status = successOfKind[operation.kind]
  const tags = {
    etag: outcome.version === null ? null : etagOf(outcome.version),
    location: outcome.location ?? null,
  }
  return operation.answer
    ? { ...asResponse(status, outcome.answer), ...tags }
    : { status, body: null, ...tags }
}

function needsReason(operation: Mutation, { audit, reasonNeededFor = [] }: MutationResult<unknown>): boolean {
  return (
    needsReasonAlways(operation) ||
    reasonNeededFor.length > 0 ||
    (audit !== unchanged && isExceptional(audit))
  )
}

const isExceptional = ({ limitException }: Audited): boolean => Boolean(limitException)

function refuseWithoutReason({ audit, reasonNeededFor = [] }: MutationResult<unknown>): void {
  // First what is never done without one, whether it goes past a limit besides or not.
  if (reasonNeededFor.length > 0) throw reasonRequired(reasonNeededFor)
  if (audit !== unchanged && audit.limitException) {
    throw limitExceeded(audit.limitException, 'An administrator may go past the limit by giving a "reason".')
  }
}

function reasonRequired(fields: readonly string[] = []): PosternError {
  const what = fields.length === 0 ? 'This' : `A change of ${fields.map((field) => `"${field}"`).join(', ')}`
  return new PosternError('reason_required', `${what} needs a "reason" in the body, for the audit.`)
}
