import Type, { type Static } from 'typebox'
import type { Change } from '../core/control/audit/record.ts'
import type { Audited, MutationResult, Sentences } from './operation.ts'
import { unchanged } from './operation.ts'

/** The answer of `?dry_run=true`: what the operation's own code did in a transaction that was then rolled back. */
export const Preview = Type.Object(
  {
    operation: Type.String(),
    reason_required: Type.Boolean({ description: 'Whether the act is refused without a `reason`.' }),
    changes: Type.Array(
      Type.Object(
        {
          resource: Type.String(),
          id: Type.Union([Type.Integer(), Type.String(), Type.Null()], {
            description: 'Null for what does not exist yet.',
          }),
          field: Type.String(),
          before: Type.Unknown(),
          after: Type.Unknown({ description: 'Null also for what is only known once it is done.' }),
        },
        { additionalProperties: false },
      ),
    ),
    effects: Type.Array(Type.String(), { description: 'What follows from the change, in sentences.' }),
    warnings: Type.Array(Type.String(), { description: 'What to think about first, in sentences.' }),
  },
  { title: 'Preview', additionalProperties: false },
)

export async function previewOf(
  operation: string,
  outcome: MutationResult<unknown>,
  isReasonRequired: boolean,
): Promise<Static<typeof Preview>> {
  return {
    operation,
    reason_required: isReasonRequired,
    changes: outcome.audit === unchanged ? [] : changesOf(outcome.audit),
    effects: [...(await linesOf(outcome.effects))],
    warnings: [...(await linesOf(outcome.warnings))],
  }
}

const linesOf = (lines: Sentences): Promise<readonly string[]> =>
  typeof lines === 'function' ? lines() : Promise.resolve(lines)

/** Made at random, or numbered, when the act is really done. */
const unknowable = new Set([
  'secret_hint',
  'prefix',
  'identity_id',
  'selector',
  'dkim_records',
  'next_check_at',
])

function changesOf({ change, related = [], subject }: Audited): Static<typeof Preview>['changes'] {
  // A person's data is kept out of the audited change, but who previews it wants to see it.
  const person = subject ? { ...subject } : {}
  const main: Change = {
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
      .map((entry) => (unknowable.has(entry.field) ? { ...entry, after: null } : entry)),
  )
}

const fieldOf = (of: object | null, field: string): unknown =>
  (of as Record<string, unknown> | null)?.[field] ?? null
