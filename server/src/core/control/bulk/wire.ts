import Type, { type Static } from 'typebox'
import { MessageId, nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/** The operations that can be performed on many projects. None of them deletes a resource or reveals a secret. */
export const bulkOperations = [
  'projects.edit',
  'interventions.create',
  'queue.hold',
  'queue.release',
] as const
export type BulkOperation = (typeof bulkOperations)[number]

export const maxBulkIds = 10_000
export const maxBulkItems = 100_000
/** The refused items in a response. */
export const maxRefusals = 100

export const BulkId = { ...MessageId, description: 'The id of the bulk action, a version 7 UUID.' }

const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const BulkAction = Type.Object(
  {
    id: BulkId,
    operation: oneOf(bulkOperations),
    filter: nullable(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description: 'The filter that selected the projects. Null if the request contained their ids.',
        },
      ),
    ),
    body: Type.Object({}, { additionalProperties: true, description: 'The body of the operation.' }),
    reason: Type.String({ description: 'The audit reason of every change.' }),
    started_by: Type.Object(
      { id: Type.Integer(), email: Type.String() },
      { additionalProperties: false, description: 'The administrator whose rights apply.' },
    ),
    status: oneOf(['running', 'stopped', 'finished']),
    stopped_because: nullable(
      oneOf(['administrator', 'rights'], {
        description:
          '`rights`: the administrator who started it may no longer perform the operation. Null unless it is stopped.',
      }),
    ),
    matched: Count('The number of projects.'),
    changed: Count('Projects that were changed.'),
    unchanged: Count('Projects that already were as the operation leaves them.'),
    refused: Count('Projects for which the operation was rejected.'),
    created_at: Timestamp,
    updated_at: Timestamp,
    finished_at: nullable(Timestamp),
  },
  { title: 'BulkAction', additionalProperties: false },
)

const Refusal = {
  project_id: Type.Integer(),
  error: Type.String({ description: 'The error code.' }),
  message: Type.String(),
}

export const BulkActionDetail = Type.Object(
  {
    ...BulkAction.properties,
    refusals: Type.Array(
      Type.Object({ ...Refusal, project_name: nullable(Type.String()) }, { additionalProperties: false }),
      { description: `The first ${maxRefusals} projects for which the operation was rejected, by id.` },
    ),
  },
  { title: 'BulkActionDetail', additionalProperties: false },
)

export type BulkRefusal = Static<typeof BulkActionDetail>['refusals'][number]
