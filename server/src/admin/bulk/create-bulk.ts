import { randomUUIDv7 } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { bulkChange, bulkView, refuseSecond, startBulk } from '../../core/control/bulk/bulk.ts'
import {
  BulkAction,
  type BulkOperation,
  bulkOperations,
  maxBulkIds,
  maxBulkItems,
} from '../../core/control/bulk/wire.ts'
import { lockUserRow } from '../../core/control/users/users.ts'
import { oneOf } from '../../core/shared/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'
import { type ProjectFilter, projectFilters } from '../projects/filters.ts'
import { evaluate } from './evaluate.ts'
import { bulkOperationTable, requireValidBody } from './operations.ts'
import type { BulkPreview } from './preview-wire.ts'
import { type Selection, selectProjects } from './select-projects.ts'

const bodies = Object.fromEntries(
  Object.entries(bulkOperationTable).map(([operation, { body }]) => [
    operation,
    Object.keys(body.properties),
  ]),
)

export const createBulkOperation = adminOperation({
  id: 'bulk.create',
  kind: 'enqueue',
  path: '/admin/bulk',
  summary: 'Start a bulk action',
  description: `Performs one operation on many projects. Send either \`ids\` or \`filter\`, which is applied once, at the start, and may match ${maxBulkItems.toLocaleString('en')} projects. A worker performs the operation on one project after the other, in order of their ids. Each change has its own audit entry, with the id of the bulk action as \`bulk_id\`. A project for which the operation is rejected does not stop the others. Before each change, the worker checks that the administrator who started the bulk action may still perform the operation; if not, the bulk action stops. An administrator can have one running bulk action. Requires two-factor authentication within the last 10 minutes; a dry run does not. The preview contains \`bulk\`: the operation is tried for each project and rolled back, for 25 seconds at most.`,
  params: NoParams,
  body: {
    operation: oneOf(bulkOperations, {
      description: `The operation. Fields of its body: ${Object.entries(bodies)
        .map(
          ([operation, fields]) =>
            `\`${operation}\`: ${fields.map((name) => `\`${name}\``).join(', ') || 'none'}`,
        )
        .join('; ')}.`,
    }),
    ids: Type.Optional(
      Type.Array(Id, {
        minItems: 1,
        maxItems: maxBulkIds,
        uniqueItems: true,
        description: 'The ids of the projects.',
      }),
    ),
    filter: Type.Optional(
      Type.Object(projectFilters, {
        additionalProperties: false,
        description: 'The filters of `projects.list`. An empty object selects every project.',
      }),
    ),
    body: Type.Object(
      {},
      { additionalProperties: true, description: 'The body of the operation, without `reason`.' },
    ),
  },
  example: {
    operation: 'projects.edit',
    filter: { plan_id: 1, max_score: 20 },
    body: { is_locked: true },
    reason: 'Spam wave from free accounts',
  },
  // 10,000 ids of up to 16 digits.
  bodyLimitBytes: 256 * 1024,
  needsRecentSecondFactor: true,
  refusals: ['limit_exceeded'],
  answer: BulkAction,
  hasVersion: false,
  hasLocation: true,
  async prepare(deps, { actor, requestId, body: { operation, ids, filter, body }, isDryRun }) {
    const selection = selectionOf(ids, filter)
    requireValidBody(operation, body)
    const projectIds = await selectProjects(deps.db, selection)
    if (!isDryRun) return { projectIds, preview: undefined }
    // Trying the operation takes a while.
    await deps.db.read((tx) => refuseSecond(tx, actor.id))
    const tried = { actor, requestId, operation, body: body as Record<string, unknown> }
    return { projectIds, preview: await evaluate(deps, tried, projectIds) }
  },
  target: async () => null,
  async run({ tx, actorId, requestId, body: { operation, filter, body }, preloaded, reason }) {
    const { projectIds, preview } = preloaded
    await lockUserRow(tx, actorId)
    const bulk = {
      ...{
        id: randomUUIDv7(),
        operation,
        filter: filter ?? null,
        body: body as object,
        request_id: requestId,
      },
      ...{ started_by: actorId, reason: reason ?? '' },
    }
    const row = await startBulk(tx, bulk, projectIds)
    return {
      audit: { projectId: null, change: bulkChange(null, row) },
      effects: preview ? effectsOf(operation, preview) : [],
      warnings: preview ? warningsOf(preview) : [],
      answer: bulkView(row),
      version: null,
      location: `/v1/admin/bulk/${row.id}`,
      bulk: preview,
    }
  },
})

function selectionOf(ids: readonly number[] | undefined, filter: ProjectFilter | undefined): Selection {
  if (ids !== undefined && filter === undefined) return { ids }
  if (filter !== undefined && ids === undefined) return { filter }
  throw new PosternError('validation_failed', 'Send either "ids" or "filter".')
}

const text = (count: number): string => count.toLocaleString('en')

function effectsOf(operation: BulkOperation, preview: Static<typeof BulkPreview>): string[] {
  const { matched, evaluated, changed, unchanged, refused, is_complete } = preview
  const counts = `changed: ${text(changed)}, unchanged: ${text(unchanged)}, refused: ${text(refused)}.`
  return [
    `The operation ${operation} is performed on ${text(matched)} ${matched === 1 ? 'project' : 'projects'}.`,
    is_complete ? `Projects ${counts}` : `Of the first ${text(evaluated)} projects, ${counts}`,
  ]
}

function warningsOf({ is_complete, evaluated, refusals }: Static<typeof BulkPreview>): string[] {
  return [
    ...(is_complete
      ? []
      : [`There are too many projects to try the operation on all of them. ${text(evaluated)} were tried.`]),
    ...refusals.map(
      ({ error, message, count }) => `Refused with ${error}: ${text(count)}. Example: ${message}`,
    ),
  ]
}
