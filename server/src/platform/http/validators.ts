import { AjvCompiler as ajvCompiler } from '@fastify/ajv-compiler'
import type { FastifySchemaCompiler } from 'fastify'
import { CheckedBody } from './checked-body.ts'

/** Request validators, used by the server and by worker threads. */

// By default Fastify coerces "1" to 1 and silently drops unknown fields; here both are errors. `verbose` adds the invalid
// value to the error, for use in its message.
export const ajvOptions = {
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
  allErrors: true,
  verbose: true,
}

type Validator = ReturnType<FastifySchemaCompiler<unknown>>

const buildEagerly = ajvCompiler()

/**
 * Fastify's validators, compiled on first use: compiling all of them would take half of a process's startup time. Tests
 * check that every schema compiles.
 */
export const buildValidator: typeof buildEagerly = (schemas, options) => {
  const build = buildEagerly(schemas, options)
  return (route) => compiledOnFirstUse(() => build(route)) as ReturnType<typeof build>
}

function compiledOnFirstUse(compile: () => Validator): Validator {
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
