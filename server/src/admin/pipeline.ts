import type { Actor } from '../core/audit/record.ts'
import { recordAudit } from '../core/audit/record.ts'
import { IdempotentRequest } from '../core/idempotency/idempotency.ts'
import type { Tx } from '../platform/db/db.ts'
import { PosternError } from '../platform/errors.ts'
import { honoursIfMatch, needsReasonAlways } from './document.ts'
import { type AdminDeps, type Audited, type Mutation, type Outcome, unchanged } from './operation.ts'
import { previewOf } from './preview.ts'
import { reasonOf } from './reason.ts'

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

export interface Answer {
  status: number
  /** JSON, or null for an empty body. */
  body: string | null
  etag: string | null
  location: string | null
  isRepeated?: true
}

const successOf = { create: 201, edit: 200, rotate: 200, ask: 200, delete: 204 } as const

export async function perform(
  operation: Mutation,
  request: MutationRequest,
  { db, vault, domains }: AdminDeps,
): Promise<Answer> {
  const { params, isDryRun } = request
  const { reason: givenReason, ...body } = request.body
  const reason = reasonOf(givenReason)
  const repeatable = isDryRun ? undefined : idempotentRequest(operation, request)

  const work = async (tx: Tx): Promise<Answer> => {
    await repeatable?.claim(tx)
    const target = await operation.target(tx, params)
    const before = await repeatable?.recall(tx)
    if (before) return { ...before, isRepeated: true }
    if (honoursIfMatch(operation)) requireVersion(request.ifMatch, target as { version: number })
    if (!isDryRun && reason === null && needsReasonAlways(operation)) throw reasonRequired()

    const outcome = await operation.run({
      tx,
      vault,
      domains,
      actorId: request.actor.userId,
      params,
      body,
      target,
      reason,
    })
    if (isDryRun)
      return asAnswer(200, await previewOf(operation.id, outcome, needsReason(operation, outcome)))

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
  return isDryRun ? db.rehearse(work) : db.transaction(work)
}

function idempotentRequest(
  { id }: Mutation,
  { actor, idempotencyKey, params, body }: MutationRequest,
): IdempotentRequest | undefined {
  if (idempotencyKey === undefined) return undefined
  return new IdempotentRequest(
    { actor: `admin:${actor.userId}`, operation: id, key: idempotencyKey },
    { params, body },
  )
}

function answerOf(operation: Mutation, outcome: Outcome<unknown>): Answer {
  const status = successOf[operation.kind]
  const tags = {
    etag: outcome.version === null ? null : etagOf(outcome.version),
    location: outcome.location ?? null,
  }
  return operation.answer ? { ...asAnswer(status, outcome.answer), ...tags } : { status, body: null, ...tags }
}

const asAnswer = (status: number, body: unknown): Answer => ({
  status,
  body: JSON.stringify(body),
  etag: null,
  location: null,
})

export const etagOf = (version: number): string => `"${version}"`

/** RFC 9110 §13.1.1: any version, or one of these. */
export type IfMatch = '*' | readonly string[]

export function ifMatchOf(header: string | undefined): IfMatch | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  if (text === '*') return '*'
  // RFC 9110 §5.6.1.2: empty elements of a list are ignored.
  const elements = text.split(',').filter((tag) => tag.trim() !== '')
  const tags = elements.map((tag) => /^(?:W\/)?"([\x21\x23-\x7e]*)"$/.exec(tag.trim())?.[1])
  if (tags.length === 0 || tags.includes(undefined)) {
    throw new PosternError(
      'invalid_parameter',
      'If-Match must be the ETag of an earlier answer, in its quotation marks, or *.',
    )
  }
  return tags as string[]
}

function requireVersion(ifMatch: IfMatch | undefined, { version }: { version: number }): void {
  if (ifMatch === undefined || ifMatch === '*' || ifMatch.includes(String(version))) return
  throw new PosternError(
    'stale_resource',
    `This was changed in the meantime: its version is now ${version}. Read it again and decide anew.`,
  )
}

function needsReason(operation: Mutation, { audit, reasonNeededFor = [] }: Outcome<unknown>): boolean {
  return (
    needsReasonAlways(operation) ||
    reasonNeededFor.length > 0 ||
    (audit !== unchanged && isExceptional(audit))
  )
}

const isExceptional = ({ limitException }: Audited): boolean => Boolean(limitException)

function refuseWithoutReason({ audit, reasonNeededFor = [] }: Outcome<unknown>): void {
  // First what is never done without one, whether it goes past a limit besides or not.
  if (reasonNeededFor.length > 0) throw reasonRequired(reasonNeededFor)
  if (audit !== unchanged && audit.limitException) {
    const { limit, value, count } = audit.limitException
    throw new PosternError(
      'limit_exceeded',
      `The plan in force allows ${value} (${limit}), and this would be number ${count}. ` +
        'An administrator may go past the limit by giving a "reason".',
    )
  }
}

function reasonRequired(fields: readonly string[] = []): PosternError {
  const what = fields.length === 0 ? 'This' : `A change of ${fields.map((field) => `"${field}"`).join(', ')}`
  return new PosternError('reason_required', `${what} needs a "reason" in the body, for the audit.`)
}
