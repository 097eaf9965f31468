import { UsageError } from './errors.ts'

/**
 * Parses environment variables into typed values, and reports all errors together.
 *
 * docs/operations/configuration.md is generated from the settings table (config/table.ts).
 */
export interface Setting<T> {
  name: string
  about: string
  /** The default as text. Without a default, the variable is required. */
  default?: string
  /** Never shown. Can also be read from the file named by `<name>_FILE`. */
  secret?: boolean
  /** Throws `Wrong` with the expected format. */
  parse(text: string): T
}

/** `problems` has one line per invalid setting. */
export class UnusableSettings extends UsageError {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`The configuration is invalid:\n${problems.map((line) => `  - ${line}`).join('\n')}`)
    this.problems = problems
  }
}

/** Thrown by parsers. The message follows the variable's name: "… must be a number". */
export class Wrong extends Error {}

// biome-ignore lint/suspicious/noExplicitAny: a table of settings of any type.
export type SettingsTable = Record<string, Setting<any>>
export type SettingsOf<T extends SettingsTable> = { [K in keyof T]: ReturnType<T[K]['parse']> }

export type Environment = Record<string, string | undefined>

export function readSettings<T extends SettingsTable>(
  table: T,
  env: Environment,
  readFile: (path: string) => string,
  /** All known settings; any other variable is an error. */
  known: SettingsTable = table,
): SettingsOf<T> {
  const problems = unknownNames(known, env)
  const values: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries(table)) {
    try {
      const text = textOf(setting, env, readFile) ?? setting.default
      if (text === undefined) throw new Wrong(`is not set. ${setting.about}`)
      values[key] = setting.parse(text)
    } catch (error) {
      if (!(error instanceof Wrong)) throw error
      problems.push(`${setting.name} ${error.message}`)
    }
  }
  if (problems.length > 0) throw new UnusableSettings(problems)
  return values as SettingsOf<T>
}

function textOf(
  { name, secret }: Setting<unknown>,
  env: Environment,
  readFile: (path: string) => string,
): string | undefined {
  // An empty variable (`FOO=` in a compose file) counts as unset.
  const inline = env[name] || undefined
  const file = secret ? env[`${name}_FILE`] || undefined : undefined
  if (file === undefined) return inline
  if (inline !== undefined) throw new Wrong(`and ${name}_FILE are both set; remove one of them`)
  try {
    return readFile(file).trim()
  } catch (error) {
    throw new Wrong(`cannot be read from ${name}_FILE: ${(error as Error).message}`)
  }
}

// Set by tests, or by Kubernetes in every pod if a Service is named `postern`.
const ignoredNames = /^POSTERN_(?:TEST_|SERVICE_(?:HOST|PORT)|PORT(?:_|$))/

/** A mistyped variable must not silently leave the default in effect. */
function unknownNames(table: SettingsTable, env: Environment): string[] {
  const known = Object.values(table).flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]))
  return Object.keys(env)
    .filter((name) => name.startsWith('POSTERN_') && !ignoredNames.test(name) && !known.includes(name))
    .map((name) => `${name} is not a Postern setting; did you mean ${nearest(name, known)}?`)
}

function nearest(word: string, candidates: string[]): string {
  return candidates.reduce((best, next) => (distance(word, next) < distance(word, best) ? next : best))
}

/** The Levenshtein distance. */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

export const text = (value: string): string => value

export const integer =
  (min: number, max: number) =>
  (value: string): number => {
    const number = Number(value)
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new Wrong(`must be a whole number from ${min} to ${max}, not "${value}"`)
    }
    return number
  }

export const oneOf =
  <T extends string>(...allowed: T[]) =>
  (value: string): T => {
    const found = allowed.find((candidate) => candidate === value)
    if (found === undefined) throw new Wrong(`must be one of ${allowed.join(', ')}, not "${value}"`)
    return found
  }

export const list = (value: string): string[] =>
  value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
