import { AjvCompiler as ajvCompiler } from '@fastify/ajv-compiler'
import type { FastifySchemaCompiler } from 'fastify'
import { CheckedBody } from './checked-body.ts'

/** The validators of requests, in the server and in threads. */

// Fastify would coerce "1" to 1 and silently drop unknown fields; here both are errors of the caller.
// `verbose`: an error carries the value, which messages name.
export const ajvOptions = {
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
  allErrors: true,
  verbose: true,
}

type Validator = ReturnType<FastifySchemaCompiler<unknown>>

const buildAtOnce = ajvCompiler()

/**
 * Fastify's own validators, each compiled at the first request that needs it: compiling all of them would take half of
 * a process's start time. Tests check that every schema compiles.
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
