import { parseArgs } from 'node:util'
import { loadConfig } from '../config.ts'
import { type Context, createContext } from '../context.ts'
import { signInAddress } from '../core/access/email.ts'
import { UsageError } from '../platform/errors.ts'
import { createLogger } from '../platform/log.ts'

export interface Command {
  run(args: string[]): Promise<void>
}

export const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

/** The named options, each a text; what has no default is required, and anything else on the line is a mistake. */
export function options<Name extends string>(
  args: string[],
  names: readonly Name[] = [],
  defaults: Partial<Record<Name, string>> = {},
): Record<Name, string> {
  const shape = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
  let given: Record<string, unknown>
  try {
    given = parseArgs({ args, options: shape, strict: true }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
  const values = { ...defaults, ...given } as Record<Name, string>
  const missing = names.filter((name) => values[name] === undefined || given[name] === '')
  if (missing.length > 0) throw new UsageError(`Missing: ${missing.map((name) => `--${name}`).join(', ')}`)
  return values
}

export const emailOf = (text: string): string => {
  const email = signInAddress(text)
  if (email === undefined) throw new UsageError(`"${text}" is not an email address that can sign in.`)
  return email
}

/** For commands that do one thing and end: quiet unless something is wrong. */
export async function withContext<T>(work: (context: Context) => Promise<T>): Promise<T> {
  const config = loadConfig(process.env)
  const context = createContext(config, createLogger('warn', 2), 'postern command')
  try {
    return await work(context)
  } finally {
    await context.close()
  }
}
