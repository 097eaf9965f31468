import type { FastifySchemaValidationError as Fault } from 'fastify'

/** What a schema found wrong, as a person would say it: each field once, and what it should be. */

// An answer is no larger than a person reads, whatever was sent.
const maxFaults = 10
const maxNameLength = 100

export function validationMessage(faults: readonly Fault[], noun: 'field' | 'parameter' = 'field'): string {
  const sentences = new Map<string, string[]>()
  for (const fault of faults.filter(({ keyword }) => keyword !== 'anyOf')) {
    const { name, text } = describe(fault, noun)
    const known = sentences.get(name)
    if (!known) sentences.set(name, [text])
    // The branches of an alternative are one fault with two remedies.
    else if (known.length < maxFaults && !known.includes(text)) known.push(text)
  }
  const told = [...sentences].slice(0, maxFaults).map(([name, texts]) => `${name} ${joined(texts)}`)
  return `${told.join('; ') || 'The request is not valid'}.`
}

function joined(texts: string[]): string {
  const [first = '', ...others] = texts
  const mustBe = /^must be /
  return mustBe.test(first)
    ? [first, ...others.map((text) => text.replace(mustBe, ''))].join(' or ')
    : texts.join(' and ')
}

function describe(
  { instancePath, keyword, params, message }: Fault,
  noun: string,
): { name: string; text: string } {
  const field = instancePath.slice(1, maxNameLength).replaceAll('/', '.')
  const member = (inner: unknown) => {
    const name = [field, String(inner).slice(0, maxNameLength)].filter(Boolean).join('.')
    return `"${name}"`
  }
  const name = field === '' ? 'The body' : `"${field}"`
  switch (keyword) {
    case 'additionalProperties':
      return { name: member(params['additionalProperty']), text: `is not a ${noun} of this request` }
    case 'required':
      return { name: member(params['missingProperty']), text: 'is missing' }
    case 'enum':
      return { name, text: `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}` }
    case 'type':
      return { name, text: `must be ${withArticle(String(params['type']))}` }
    case 'format':
      return { name, text: `must be a ${String(params['format'])} such as 2026-11-14T09:30:00Z` }
    case 'pattern':
      return { name, text: 'does not have the form that the reference tells' }
    default:
      return { name, text: message ?? 'is not valid' }
  }
}

const withArticle = (type: string): string =>
  type === 'null' ? type : `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`
