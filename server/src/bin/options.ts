import { parseArgs } from 'node:util'
import { UsageError } from '../platform/errors.ts'
import type { Option } from './manual.ts'
import { didYouMean } from './suggestion.ts'

type Value<One extends Option> = One extends { value: string }
  ? One extends { isRepeated: true }
    ? string[]
    : One extends { isRequired: true }
      ? string
      : string | undefined
  : boolean

export type Values<Options extends Record<string, Option>> = {
  [Name in keyof Options]: Value<Options[Name]>
}

/** Parses the arguments according to the manual. Every unknown argument is an error. */
export function readOptions<Options extends Record<string, Option>>(
  options: Options,
  args: string[],
): Values<Options> {
  const shape = Object.fromEntries(
    Object.entries(options).map(([name, { value, isRepeated }]) => [
      name,
      {
        type: value === undefined ? ('boolean' as const) : ('string' as const),
        multiple: isRepeated ?? false,
      },
    ]),
  )
  let given: Record<string, unknown>
  try {
    given = parseArgs({ args, options: shape, strict: true }).values
  } catch (error) {
    throw new UsageError(unknownOption(error, Object.keys(options)) ?? (error as Error).message)
  }
  const missing = Object.entries(options)
    .filter(([name, { isRequired }]) => (isRequired && given[name] === undefined) || given[name] === '')
    .map(([name]) => `--${name}`)
  if (missing.length > 0) throw new UsageError(`Missing option: ${missing.join(', ')}`)
  const absent: Record<string, unknown> = {}
  for (const [name, { value, isRepeated }] of Object.entries(options)) {
    if (isRepeated) absent[name] = []
    else if (value === undefined) absent[name] = false
  }
  return { ...absent, ...given } as Values<Options>
}

function unknownOption(error: unknown, known: readonly string[]): string | undefined {
  const { code, message } = error as NodeJS.ErrnoException
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return undefined
  const name = /'(--?[^']*)'/.exec(message)?.[1]
  return (
    name &&
    `Unknown option "${name}".${didYouMean(
      name,
      known.map((option) => `--${option}`),
    )}`
  )
}
