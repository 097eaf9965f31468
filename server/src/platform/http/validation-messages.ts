import type { FastifySchemaValidationError } from 'fastify'
import { fieldPath, segmentsOf } from './field-path.ts'

/** Formats schema validation errors as one sentence that lists each field once, with its requirement. */

// Keeps the message readable, regardless of the input.
const maxErrors = 10
const maxValueLength = 100

/** `data`: the invalid value (`verbose` in validators.ts). */
type ValidationError = FastifySchemaValidationError & { data?: unknown }

export function validationMessage(
  errors: readonly ValidationError[],
  noun: 'field' | 'parameter' = 'field',
): string {
  const byField = new Map<string, string[]>()
  for (const error of errors.filter(({ keyword }) => keyword !== 'anyOf')) {
    const { name, text } = describe(error, noun)
    const known = byField.get(name)
    if (!known) byField.set(name, [text])
    // The branches of a union are reported as one error with several alternatives.
    else if (known.length < maxErrors && !known.includes(text)) known.push(text)
  }
  const sentences = [...byField].slice(0, maxErrors).map(([name, texts]) => `${name} ${joined(texts)}`)
  return `${sentences.join('; ') || 'The request is not valid'}.`
}

const mustBe = /^must be /
const mustBeNull = 'must be null'

function joined(texts: readonly string[]): string {
  if (texts.every((text) => mustBe.test(text))) {
    return texts.map((text, index) => (index === 0 ? text : text.replace(mustBe, ''))).join(' or ')
  }
  const others = texts.filter((text) => text !== mustBeNull).join(' and ')
  return texts.includes(mustBeNull) ? `${others}, or be null` : others
}

function describe(
  { instancePath, keyword, params, message, data }: ValidationError,
  noun: string,
): { name: string; text: string } {
  const segments = segmentsOf(instancePath)
  const member = (inner: unknown) => `"${fieldPath([...segments, String(inner)])}"`
  const name = segments.length === 0 ? 'The body' : `"${fieldPath(segments)}"`
  const limit = Number(params['limit'])
  switch (keyword) {
    case 'additionalProperties':
      return { name: member(params['additionalProperty']), text: `is not a ${noun} of this request` }
    case 'required':
      return { name: member(params['missingProperty']), text: 'is missing' }
    case 'enum':
      return { name, text: `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}` }
    case 'const':
      return { name, text: `must be ${JSON.stringify(params['allowedValue'])}` }
    case 'type':
      return { name, text: `must be ${withArticle(String(params['type']))}` }
    case 'format':
      return { name, text: `must be a ${String(params['format'])} such as 2026-11-14T09:30:00Z` }
    case 'pattern':
      return { name, text: patternText(String(params['pattern'])) }
    case 'minLength':
      return { name, text: `must have at least ${counted(limit, 'character')}` }
    case 'maxLength':
      return { name, text: `must have at most ${counted(limit, 'character')}` }
    case 'minItems':
      return { name, text: `must have at least ${counted(limit, 'item')}` }
    case 'maxItems':
      return { name, text: `must have at most ${counted(limit, 'item')}` }
    case 'minProperties':
      return { name, text: `must have at least ${counted(limit, 'field')}` }
    case 'maxProperties':
      return { name, text: `must have at most ${counted(limit, 'field')}` }
    case 'minimum':
      return { name, text: `must be at least ${limit}` }
    case 'maximum':
      return { name, text: `must be at most ${limit}` }
    case 'multipleOf':
      return { name, text: `must be a multiple of ${params['multipleOf']}` }
    case 'uniqueItems':
      return { name, text: `must not repeat ${repeated(data, Number(params['j']))}` }
    default:
      return { name, text: message ?? 'is not valid' }
  }
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

const withArticle = (type: string): string =>
  type === 'null' ? type : `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`

const repeated = (items: unknown, index: number): string => {
  const text = JSON.stringify((items as unknown[] | undefined)?.[index]) ?? 'an item'
  return text.length > maxValueLength ? 'an item' : text
}

function patternText(pattern: string): string {
  if (pattern.startsWith('^[0-9a-f]{8}-')) return 'must be a UUID'
  if (pattern === '\\S') return 'must not be blank'
  return `must match ${pattern}`
}
