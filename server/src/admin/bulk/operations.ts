import Type, { type TObject } from 'typebox'
import type { BulkOperation } from '../../core/control/bulk/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { validationMessage } from '../../platform/http/validation-messages.ts'
import { ajvOptions, buildValidator } from '../../platform/http/validators.ts'
import { createInterventionOperation } from '../interventions/create-intervention.ts'
import type { Mutation } from '../operation.ts'
import { editProjectOperation } from '../projects/edit-project.ts'
import { holdQueueOperation } from '../queue/hold-queue.ts'
import { releaseQueueOperation } from '../queue/release-queue.ts'

/** The fields of a project that a bulk action can edit: neither its name nor its owner. */
const editableFields = [
  'is_locked',
  'plan_id',
  'admin_plan_id',
  'admin_subscription_status',
  'allow_service_mta',
  'reputation_score',
  'expires_at',
]

interface BulkOperationEntry {
  operation: Mutation
  /** The body without the reason. */
  body: TObject
}

const bodyOf = ({ body }: Mutation, options: object = {}): TObject =>
  Type.Object(body, { additionalProperties: false, ...options })

/** The operations that a bulk action can perform, all of them on one project. */
export const bulkOperationTable: Record<BulkOperation, BulkOperationEntry> = {
  'projects.edit': {
    operation: editProjectOperation,
    body: Type.Object(
      Object.fromEntries(
        Object.entries(editProjectOperation.body).filter(([field]) => editableFields.includes(field)),
      ),
      { additionalProperties: false, minProperties: 1 },
    ),
  },
  'interventions.create': {
    operation: createInterventionOperation,
    body: bodyOf(createInterventionOperation),
  },
  'queue.hold': { operation: holdQueueOperation, body: bodyOf(holdQueueOperation) },
  'queue.release': { operation: releaseQueueOperation, body: bodyOf(releaseQueueOperation) },
}

const compile = buildValidator({}, { customOptions: ajvOptions })
const validators = Object.fromEntries(
  Object.entries(bulkOperationTable).map(([id, { body }]) => [
    id,
    compile({ schema: body, method: 'POST', url: '/admin/bulk', httpPart: 'body' }),
  ]),
)

/** Rejects a body that the operation itself would reject. */
export function requireValidBody(operation: BulkOperation, body: unknown): void {
  const isValid = validators[operation]
  if (isValid === undefined) throw new Error(`no validator for ${operation}`)
  if (isValid(body)) return
  const errors = (isValid.errors ?? []).map((error) => ({
    ...error,
    instancePath: `/body${error.instancePath}`,
  }))
  throw new PosternError('validation_failed', validationMessage(errors))
}
