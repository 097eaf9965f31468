import { AjvCompiler as ajvCompiler } from '@fastify/ajv-compiler'
import type { FastifySchemaCompiler } from 'fastify'
import { CheckedBody } from './checked-body.ts'

/** What requests are checked with, in the server and in threads. */

// Fastify would coerce "1" to 1 and drop unknown fields in silence; here both are the caller's mistake.
export const ajvOptions = { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: true }

type Validator = ReturnType<FastifySchemaCompiler<unknown>>

const buildAtOnce = ajvCompiler()

/**
 * Fastify's own validators, each compiled at the first request that needs it: all of them would take half of the time
 * in which a process starts. That every schema can be compiled is for tests to say.
 */
export const buildValidator: typeof buildAtOnce = (schemas, options) => {
  const build = buildAtOnce(schemas, options)
  return (route) => compiledAtFirst(() => build(route)) as ReturnType<typeof build>
}

function compiledAtFirst(compile: () => Validator): Validator {
  let compiled: Validator | undefined
  const validate: Validator = (data) => {
    if (data instanceof CheckedBody) return data.schemaOutcome
    compiled ??= compile()
    const outcome = compiled(data)
    validate.errors = compiled.errors ?? null
    return outcome
  }
  return validate
}
