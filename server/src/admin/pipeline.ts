import type { Static } from 'typebox'
import { requireRecentSecondFactor } from '../core/control/access/verify-access-token.ts'
import type { Actor } from '../core/control/audit/record.ts'
import { recordAudit } from '../core/control/audit/record.ts'
import type { OfferedKeyPair } from '../core/control/domains/dkim-key-pool.ts'
import { findTarget, IdempotentRequest } from '../core/control/idempotency/idempotency.ts'
import type { Backtest } from '../core/control/policies/wire.ts'
import type { Tx } from '../platform/db/db.ts'
import { PosternError } from '../platform/errors.ts'
import { successOfKind } from '../platform/http/kinds.ts'
import { asResponse, type HttpResponse } from '../platform/http/response.ts'
import { etagOf, type IfMatch, requireVersion } from '../platform/http/versions.ts'
import { type AdminDeps, type Mutation, type MutationResult, unchanged } from './operation.ts'
import { previewOf } from './preview.ts'
import { reasonOf, requireReasonBeforeRun, requireReasonForResult } from './reason.ts'
import { honoursIfMatch, methodOf } from './schema.ts'

/**
 * Runs an administrative mutation, from its validated input to its response, in one transaction.
 *
 * Checks in order: the resource does not exist (404), a stored response exists (idempotency), the version differs
 * from If-Match (412), the rules of the operation (409, 422). A rejected request writes nothing; a committed one has
 * an audit row.
 */
export interface MutationRequest {
  actor: Actor
  requestId: string
  params: Record<string, unknown>
  body: Record<string, unknown> & { reason?: string }
  ifMatch: IfMatch | undefined
  idempotencyKey: string | undefined
  isDryRun: boolean
  /** When the actor completed two-factor authentication, if that is known. */
  secondFactorAt?: Date | null
  bulkItem?: BulkItem
}

/** For a change that is part of a bulk action. */
export interface BulkItem {
  bulkId: string
  /** Called first in the transaction. */
  begin?(tx: Tx): Promise<void>
  /** Called when the operation has succeeded, before its audit row is written. */
  end(tx: Tx, isChanged: boolean): Promise<void>
  /** The dry run only determines whether the operation would succeed. */
  skipsPreview?: true
}

export async function perform(
  operation: Mutation,
  request: MutationRequest,
  deps: AdminDeps,
): Promise<HttpResponse> {
  const { db, vault, domains, endpoints, endpointCommands, caps } = deps
  const { params, isDryRun, bulkItem } = request
  const { reason: givenReason, ...body } = request.body
  const reason = reasonOf(givenReason)
  if (operation.needsRecentSecondFactor && !isDryRun)
    requireRecentSecondFactor(request.secondFactorAt ?? null)
  const repeatable = isDryRun ? undefined : idempotentRequest(operation, request)
  const { rejection, preloaded } = operation.prepare
    ? await prepared(() => operation.prepare?.(deps, { ...request, body }))
    : { rejection: undefined, preloaded: await preloadOf(operation, request, body, deps) }
  const backtest = isDryRun ? await backtestOf(operation, request, body, deps) : undefined

  const work = async (tx: Tx, pair: OfferedKeyPair): Promise<HttpResponse> => {
    await bulkItem?.begin?.(tx)
    await repeatable?.claim(tx)
    const deleting = methodOf(operation) === 'DELETE' ? repeatable : undefined
    const found = await findTarget(() => operation.target(tx, params, preloaded), tx, deleting)
    const before = found.deletion ?? (await repeatable?.findResponse(tx))
    if (before) return { ...before, isRepeated: true }
    if (rejection) throw rejection
    const { target } = found
    if (honoursIfMatch(operation)) requireVersion(request.ifMatch, target as { version: number })
    if (!isDryRun) requireReasonBeforeRun(operation, reason)

    const result = await operation.run({
      tx,
      vault,
      domains: { ...domains, pair },
      endpoints,
      endpointCommands,
      caps,
      actorId: request.actor.id,
      requestId: request.requestId,
      params,
      body,
      target,
      preloaded,
      reason,
    })
    if (!isDryRun) requireReasonForResult(operation, result, reason)
    await bulkItem?.end(tx, result.audit !== unchanged)
    if (isDryRun)
      return asResponse(200, bulkItem?.skipsPreview ? null : await previewOf(operation, result, backtest))

    if (result.audit !== unchanged) {
      const auditId = await recordAudit(tx, {
        actor: request.actor,
        requestId: request.requestId,
        operation: operation.id,
        projectId: result.audit.projectId,
        change: result.audit.change,
        related: result.audit.related ?? [],
        reason,
        limitException: result.audit.limitException ?? null,
        subject: result.audit.subject ?? null,
        bulkId: bulkItem?.bulkId,
      })
      await result.onAudited?.(auditId)
    }
    const answer = answerOf(operation, result)
    await repeatable?.storeResponse(tx, operation.revealsSecret ? { ...answer, body: null } : answer)
    return answer
  }
  const wanted = operation.makesDkimKey === true && { projectId: params['project_id'] as number }
  return domains.pairs.offer(wanted, (pair) =>
    isDryRun ? db.dryRun((tx) => work(tx, pair)) : db.transaction((tx) => work(tx, pair)),
  )
}

/** A repeated request gets the stored response, even if it would be rejected now. */
async function prepared(
  prepare: () => Promise<unknown> | undefined,
): Promise<{ rejection: PosternError | undefined; preloaded: unknown }> {
  try {
    return { rejection: undefined, preloaded: await prepare() }
  } catch (error) {
    if (error instanceof PosternError) return { rejection: error, preloaded: undefined }
    throw error
  }
}

/** Null if it failed: a preview without it is better than none, above all when a policy has to be turned off. */
async function backtestOf(
  operation: Mutation,
  { params }: MutationRequest,
  body: Record<string, unknown>,
  deps: AdminDeps,
): Promise<Static<typeof Backtest> | null | undefined> {
  try {
    return await operation.backtest?.(deps, params, body)
  } catch (error) {
    if (error instanceof PosternError && error.code === 'unavailable') return null
    throw error
  }
}

async function preloadOf(
  operation: Mutation,
  { params, isDryRun, bulkItem }: MutationRequest,
  body: Record<string, unknown>,
  { mailDbFor, caps }: AdminDeps,
): Promise<unknown> {
  const { preload, preloadFor } = operation
  const hasPreview = isDryRun && !bulkItem?.skipsPreview
  if (!preload || (preloadFor === 'preview' && !hasPreview)) return undefined
  try {
    return await mailDbFor(params['project_id'] as number).read((mail) => preload(mail, params, body, caps))
  } catch (error) {
    // The operation works without the data, but says less.
    const isUnavailable = error instanceof PosternError && error.code === 'unavailable'
    if (preloadFor !== undefined && isUnavailable) return undefined
    throw error
  }
}

function idempotentRequest(
  { id }: Mutation,
  { actor, idempotencyKey, params, body }: MutationRequest,
): IdempotentRequest | undefined {
  if (idempotencyKey === undefined) return undefined
  return new IdempotentRequest(
    { actor: `admin:${actor.id}`, projectId: null, operation: id, key: idempotencyKey },
    { params, body },
  )
}

function answerOf(operation: Mutation, result: MutationResult<unknown>): HttpResponse {
  const status = successOfKind[operation.kind]
  const tags = {
    etag: result.version === null ? null : etagOf(result.version),
    location: result.location ?? null,
  }
  return operation.answer
    ? { ...asResponse(status, result.answer), ...tags }
    : { status, body: null, ...tags }
}
