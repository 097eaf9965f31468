import type { FastifyRequest } from 'fastify'
import { PosternError } from '../errors.ts'
import { CheckedBody } from './checked-body.ts'

/**
 * A `preValidation` hook: text that the database cannot hold as it was sent. PostgreSQL knows no NUL, and a
 * lone surrogate would be stored as something else than what the caller was told.
 */
export async function refuseUnstorableText(request: FastifyRequest): Promise<void> {
  if (request.body instanceof CheckedBody) request.body.refuse('text')
  else if (hasUnstorableText(request.body)) throw unstorableBody()
  if (hasUnstorableText(request.query)) {
    throw new PosternError('invalid_parameter', `The query ${complaint}`)
  }
}

export const unstorableBody = (): PosternError =>
  new PosternError('validation_failed', `The body ${complaint}`)

const complaint = 'contains text with a NUL character or half of a surrogate pair.'

/** Without recursion: how deep a body is nested is its sender's choice. */
export function hasUnstorableText(root: unknown): boolean {
  const waiting = [root]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value === 'string') {
      if (value.includes('\0') || !value.isWellFormed()) return true
    } else if (typeof value === 'object' && value !== null) {
      if (Array.isArray(value)) for (const inner of value) waiting.push(inner)
      else for (const [name, inner] of Object.entries(value)) waiting.push(name, inner)
    }
  }
  return false
}
