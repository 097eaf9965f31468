import Type, { type Static } from 'typebox'
import type { Change } from '../core/control/audit/record.ts'
import { Backtest } from '../core/control/policies/wire.ts'
import { ImportReport } from '../core/shared/address-import.ts'
import { BulkPreview } from './bulk/preview-wire.ts'
import { type Audited, type Mutation, type MutationResult, type Sentences, unchanged } from './operation.ts'
import { Changes, Effects, Warnings } from './preview-fields.ts'
import { needsReason } from './reason.ts'

/**
 * The dry run, `?dry_run=true`. The pipeline runs the operation in a transaction and rolls it back; the response is a
 * preview of the changes. A dry run writes no job, audit row or idempotency row, reveals no secret, calls no
 * provider, and reports that a reason is missing instead of rejecting the request.
 */
export const DryRun = Type.Object(
  {
    dry_run: Type.Optional(
      Type.Boolean({ description: 'Return a preview of the changes without making them.' }),
    ),
  },
  { additionalProperties: false },
)

export const isDryRun = (query: unknown): boolean => (query as { dry_run?: boolean }).dry_run === true

export const Preview = Type.Object(
  {
    operation: Type.String(),
    reason_required: Type.Boolean({ description: 'Whether a `reason` is required.' }),
    changes: Changes,
    effects: Effects,
    warnings: Warnings,
    backtest: Type.Optional(Backtest),
    report: Type.Optional(ImportReport),
    bulk: Type.Optional(BulkPreview),
  },
  { title: 'Preview', additionalProperties: false },
)

const noBacktest =
  'The backtest is not available now. Without it, it is unknown when the policy would have fired.'

export async function previewOf(
  operation: Mutation,
  result: MutationResult<unknown>,
  backtest: Static<typeof Backtest> | null | undefined,
): Promise<Static<typeof Preview>> {
  return {
    operation: operation.id,
    reason_required: needsReason(operation, result),
    changes: result.audit === unchanged ? [] : changesOf(result.audit, result.views),
    effects: [...(await sentencesOf(result.effects))],
    warnings: [...(await sentencesOf(result.warnings)), ...(backtest === null ? [noBacktest] : [])],
    ...(backtest && { backtest }),
    ...(result.report && { report: result.report }),
    ...(result.bulk && { bulk: result.bulk }),
  }
}

const sentencesOf = (sentences: Sentences): Promise<readonly string[]> =>
  typeof sentences === 'function' ? sentences() : Promise.resolve(sentences)

/** Values that are assigned when the change is made: random values, and records derived from them. */
const unknowable = new Set(['secret_hint', 'prefix', 'dns_records', 'next_check_at'])

/** Ids and timestamps of a resource are not configuration. */
const bookkeeping = new Set(['id', 'project_id', 'created_at', 'updated_at'])

function changesOf(
  { change, related = [], subject }: Audited,
  views: MutationResult<unknown>['views'],
): Static<typeof Preview>['changes'] {
  // Personal data is not part of the audited change, but the preview shows it.
  const person = subject ? { ...subject } : {}
  const main: Change = views
    ? { ...change, before: withoutBookkeeping(views.before), after: withoutBookkeeping(views.after) }
    : {
        ...change,
        before: change.before && !change.after ? { ...person, ...change.before } : change.before,
        after: change.after && !change.before ? { ...person, ...change.after } : change.after,
      }
  return [main, ...related].flatMap(({ resource, id, before, after }) =>
    [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
      .map((field) => ({
        resource,
        id: before === null ? null : id,
        field,
        before: fieldOf(before, field),
        after: fieldOf(after, field),
      }))
      .filter((entry) => JSON.stringify(entry.before) !== JSON.stringify(entry.after))
      .map((entry) => ({ ...entry, after: knowable(entry.field, entry.after) })),
  )
}

const withoutBookkeeping = (view: object | null): object | null =>
  view && Object.fromEntries(Object.entries(view).filter(([field]) => !bookkeeping.has(field)))

function knowable(field: string, value: unknown): unknown {
  if (unknowable.has(field)) return null
  // The id and the selector of a domain's identity are assigned when the change is made.
  if (field === 'identity' && value !== null) return { ...(value as object), id: null, selector: null }
  return value
}

const fieldOf = (of: object | null, field: string): unknown =>
  (of as Record<string, unknown> | null)?.[field] ?? null
