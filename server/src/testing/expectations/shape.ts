import assert from 'node:assert/strict'

/** The fields of a resource on the wire, in order. */
type FieldType = 'integer' | 'number' | 'string' | 'boolean' | 'timestamp' | 'object' | 'objects' | 'strings'
export type Shape = readonly (readonly [field: string, type: FieldType])[]

const isTimestamp = (value: unknown): boolean =>
  typeof value === 'string' &&
  /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/.test(value) &&
  new Date(value).toISOString() === value

const isOf: Record<FieldType, (value: unknown) => boolean> = {
  integer: Number.isSafeInteger,
  number: Number.isFinite,
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  timestamp: isTimestamp,
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  objects: (value) =>
    Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null),
  strings: (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
}

/** Asserts that exactly the fields in `empty` are null. */
export function assertShape(
  resource: Record<string, unknown>,
  shape: Shape,
  empty: readonly string[] = [],
): void {
  assert.deepEqual(
    Object.keys(resource),
    shape.map(([field]) => field),
  )
  for (const [field, type] of shape) {
    const value = resource[field]
    if (empty.includes(field)) assert.equal(value, null, field)
    else assert.ok(isOf[type](value), `"${field}" is ${JSON.stringify(value)}, which is not of type ${type}`)
  }
}
