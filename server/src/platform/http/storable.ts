import type { FastifyRequest } from 'fastify'
import { type ErrorCode, PosternError } from '../errors.ts'
import { CheckedBody } from './checked-body.ts'
import { fieldPath } from './field-path.ts'

/**
 * A `preValidation` hook that rejects text that PostgreSQL cannot store unchanged: NUL is not allowed, and a lone surrogate
 * would become a replacement character.
 */
export async function refuseUnstorableText(request: FastifyRequest): Promise<void> {
  if (request.body instanceof CheckedBody) request.body.refuse('text')
  else requireStorableText(request.body)
  requireStorableText(request.query, 'invalid_parameter')
}

export function requireStorableText(root: unknown, code: ErrorCode = 'validation_failed'): void {
  const error = unstorableText(root, code)
  if (error) throw error
}

/** Undefined if all text can be stored. */
export function unstorableText(
  root: unknown,
  code: ErrorCode = 'validation_failed',
): PosternError | undefined {
  if (!hasUnstorableText(root)) return undefined
  const { segments, text } = findUnstorableText(root)
  const rule = text.includes('\0')
    ? 'must not contain control characters'
    : 'must not contain an unpaired surrogate'
  return new PosternError(code, `${segments ? `"${fieldPath(segments)}"` : 'The name of a field'} ${rule}.`)
}

/** Iterative, because the sender controls the depth of the body. */
function hasUnstorableText(root: unknown): boolean {
  const waiting = [root]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value === 'string') {
      if (isUnstorable(value)) return true
    } else if (typeof value === 'object' && value !== null) {
      if (Array.isArray(value)) for (const inner of value) waiting.push(inner)
      else for (const [name, inner] of Object.entries(value)) waiting.push(name, inner)
    }
  }
  return false
}

const isUnstorable = (text: string): boolean => text.includes('\0') || !text.isWellFormed()

interface Node {
  value: unknown
  key: string | number
  parent: Node | undefined
}

/** The first unstorable text in document order. A separate pass, because tracking paths costs memory. */
function findUnstorableText(root: unknown): { segments: (string | number)[] | undefined; text: string } {
  const waiting: Node[] = [{ value: root, key: '', parent: undefined }]
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    const { value } = node
    if (typeof value === 'string' && isUnstorable(value)) return { segments: segmentsOf(node), text: value }
    if (typeof value !== 'object' || value === null) continue
    const name = Array.isArray(value) ? undefined : Object.keys(value).find(isUnstorable)
    if (name !== undefined) return { segments: undefined, text: name }
    const parent = node
    const inner: [string | number, unknown][] = Array.isArray(value)
      ? value.map((item, index) => [index, item])
      : Object.entries(value)
    for (const [key, item] of inner.reverse()) waiting.push({ value: item, key, parent })
  }
  throw new Error('the unstorable text was not found again')
}

function segmentsOf(node: Node): (string | number)[] {
  const segments: (string | number)[] = []
  for (let at: Node = node; at.parent; at = at.parent) segments.push(at.key)
  return segments.reverse()
}
