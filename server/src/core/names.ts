import { PosternError } from '../platform/errors.ts'

const maxCharacters = 100

/** A name that people give to a thing: trimmed, one line, 1 to 100 characters. */
export function plainName(text: string, field: string): string {
  const name = text.trim()
  if (name === '') throw new PosternError('validation_failed', `"${field}" is empty; give it a name.`)
  // Characters as JSON Schema counts them, which are code points.
  if ([...name].length > maxCharacters) {
    throw new PosternError(
      'validation_failed',
      `"${field}" must be at most ${maxCharacters} characters long; shorten it.`,
    )
  }
  // Half of a surrogate pair would be stored as another character.
  if (/\p{Cc}/u.test(name) || !name.isWellFormed()) {
    throw new PosternError(
      'validation_failed',
      `"${field}" must not contain control characters such as line breaks; remove them.`,
    )
  }
  return name
}
