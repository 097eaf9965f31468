import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { PosternError } from '../errors.ts'
import { validationMessage } from './validation-messages.ts'

/**
 * Decodes numbers and booleans in the path and the query.
 *
 * Fastify would coerce `1e3`, `+5` and `0x10`. Here only the canonical form becomes a number; any other text fails schema
 * validation. Path and query are validated before the body, so a mistyped `dry_run` is reported even if the body is
 * invalid.
 */
export const Id = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

const ProjectId = { ...Id, description: 'The id of the project.', examples: [1] }
const ItemId = { ...Id, description: 'The id of the resource.', examples: [1] }

export const NoParams = Type.Object({}, { additionalProperties: false })
export const ItemParams = Type.Object({ id: ItemId }, { additionalProperties: false })
export const ProjectParams = Type.Object({ project_id: ProjectId }, { additionalProperties: false })
export const ProjectItemParams = Type.Object(
  { project_id: ProjectId, id: ItemId },
  { additionalProperties: false },
)

interface ParameterSchema {
  properties?: Record<string, { type?: string }>
}

/** A `preValidation` hook. */
export async function decodeParameters(request: FastifyRequest): Promise<void> {
  const { params, querystring } = (request.routeOptions.schema ?? {}) as Record<string, ParameterSchema>
  decode(request.params as Record<string, unknown>, params)
  decode(request.query as Record<string, unknown>, querystring)
  check(request, 'params', request.params)
  check(request, 'querystring', request.query)
}

function decode(values: Record<string, unknown>, schema: ParameterSchema | undefined): void {
  for (const [name, { type }] of Object.entries(schema?.properties ?? {})) {
    const text = values[name]
    if (typeof text !== 'string') continue
    if (type === 'integer' && /^(0|[1-9]\d{0,15})$/.test(text)) values[name] = Number(text)
    if (type === 'boolean' && /^(true|false)$/.test(text)) values[name] = text === 'true'
  }
}

function check(request: FastifyRequest, part: 'params' | 'querystring', values: unknown): void {
  const isValid = request.getValidationFunction(part)
  if (isValid === undefined || isValid(values)) return
  throw new PosternError('invalid_parameter', validationMessage(isValid.errors ?? [], 'parameter'))
}
