import Type, { type TObject } from 'typebox'
import { limitExceeded } from '../core/control/caps/caps.ts'
import { plainReason } from '../core/shared/text.ts'
import { PosternError } from '../platform/errors.ts'
import { type Mutation, type MutationResult, unchanged } from './operation.ts'

/**
 * The audit reason: a field of every administrative mutation, recorded whenever it is present. This file determines
 * which mutations are rejected without a reason:
 *
 *   always           every rotation and deletion, and the operations in `reasonedOperations`
 *   by changed field the fields in `reasonedFields`, if their value changes
 *   by limit         a mutation that exceeds a limit that applies to customers
 *
 * A dry run is never rejected for a missing reason: its response says whether one is required.
 */
export const Reason = Type.String({
  description:
    'The reason for the change, for the audit log: one line of 1 to 500 characters after trimming.',
  examples: ['Requested by the customer, ticket 4711'],
})

/** The same field for the OpenAPI document. The length is checked after trimming, by `reasonOf`. */
const DocumentedReason = { ...Reason, minLength: 1, maxLength: 500 }

const reasonedOperations: ReadonlySet<string> = new Set([
  'audit.undo',
  'users.edit',
  'bulk.create',
  'bulk.stop',
  'bulk.resume',
  'queue.hold',
  'queue.release',
  'queue.discard',
  'discards.stop',
  'discards.resume',
  'interventions.create',
  'interventions.edit',
  'interventions.end',
  'messages.cancel',
  'platform-suppressions.create',
  'platform-suppressions.delete',
  'platform-suppressions.import',
  'policies.create',
  'policies.edit',
  'suppressions.create',
  'suppressions.delete',
  'suppressions.import',
])

/** Locks, scores, overrides and transfers. */
const reasonedFields: Readonly<Record<string, readonly string[]>> = {
  'projects.edit': [
    'is_locked',
    'reputation_score',
    'admin_plan_id',
    'admin_subscription_status',
    'allow_service_mta',
    'user_id',
  ],
}

export const reasonOf = (given: string | undefined): string | null =>
  given === undefined ? null : plainReason(given)

export const alwaysNeedsReason = ({ id, kind }: Pick<Mutation, 'id' | 'kind'>): boolean =>
  kind === 'rotate' || kind === 'delete' || reasonedOperations.has(id)

/**
 * The documented body. A dry run may omit a required reason, and a missing reason is rejected with `reason_required`
 * instead of `validation_failed`, so the validated schema accepts a body without it.
 */
export function documentedBody(operation: Mutation): TObject {
  const { body, example } = operation
  return Type.Object(
    { ...body, reason: alwaysNeedsReason(operation) ? DocumentedReason : Type.Optional(DocumentedReason) },
    { additionalProperties: false, examples: [example] },
  )
}

/** Called before `run`, because a request that will be rejected must not reveal what `run` would find. */
export function requireReasonBeforeRun(operation: Mutation, reason: string | null): void {
  if (reason === null && alwaysNeedsReason(operation)) throw reasonRequired()
}

/** Called after `run`, in its transaction, because only `run` knows what changed. */
export function requireReasonForResult(
  operation: Mutation,
  result: MutationResult<unknown>,
  reason: string | null,
): void {
  if (reason !== null) return
  // Fields are checked first: they require a reason whether or not a limit is exceeded.
  const fields = changedReasonedFields(operation, result)
  if (fields.length > 0) throw reasonRequired(fields)
  const exception = limitExceptionOf(result)
  if (exception)
    throw limitExceeded(exception, 'An administrator can exceed the limit by providing a "reason".')
}

export const needsReason = (operation: Mutation, result: MutationResult<unknown>): boolean =>
  alwaysNeedsReason(operation) ||
  changedReasonedFields(operation, result).length > 0 ||
  Boolean(limitExceptionOf(result))

const changedReasonedFields = (
  { id }: Mutation,
  { changedFields = [] }: MutationResult<unknown>,
): readonly string[] => changedFields.filter((field) => reasonedFields[id]?.includes(field))

const limitExceptionOf = ({ audit }: MutationResult<unknown>) =>
  audit === unchanged ? null : (audit.limitException ?? null)

function reasonRequired(fields: readonly string[] = []): PosternError {
  const names = fields.map((field) => `"${field}"`).join(', ')
  return new PosternError(
    'reason_required',
    fields.length === 0
      ? 'This operation requires a "reason" in the body, for the audit log.'
      : `Changing ${names} requires a "reason" in the body, for the audit log.`,
  )
}
