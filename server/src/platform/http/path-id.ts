import Type from 'typebox'
import { PosternError } from '../errors.ts'

/** An id in a path: an integer from 0 to 2^53−1 in canonical decimal notation. */
export const PathId = Type.String({ pattern: '^(0|[1-9][0-9]{0,15})$' })

export function pathId(text: string): number {
  const id = Number(text)
  if (!Number.isSafeInteger(id)) {
    throw new PosternError('invalid_parameter', `"${text}" is too large to be an identifier.`)
  }
  return id
}
