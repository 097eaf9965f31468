import type { FastifyRequest } from 'fastify'
import { PosternError } from '../errors.ts'

/**
 * A `preValidation` hook: text that the database cannot hold as it was sent. PostgreSQL knows no NUL, and a
 * lone surrogate would be stored as something else than what the caller was told.
 */
export async function refuseUnstorableText(request: FastifyRequest): Promise<void> {
  if (hasUnstorableText(request.body)) {
    throw new PosternError('validation_failed', `The body ${complaint}`)
  }
  if (hasUnstorableText(request.query)) {
    throw new PosternError('invalid_parameter', `The query ${complaint}`)
  }
}

const complaint = 'contains text with a NUL character or half of a surrogate pair.'

function hasUnstorableText(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0') || !value.isWellFormed()
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([name, inner]) => hasUnstorableText(name) || hasUnstorableText(inner))
}
