import { signInAddress } from '../core/control/access/email.ts'
import { plainReason } from '../core/shared/text.ts'
import { PosternError, UsageError } from '../platform/errors.ts'
import { type CommandName, exits, manual, usageOf, type Verb } from './manual.ts'
import { readOptions, type Values } from './options.ts'
import { didYouMean } from './suggestion.ts'

export interface Command {
  run(args: string[]): Promise<void>
}

type Verbs<Name extends CommandName> = (typeof manual)[Name]['verbs']
type OptionsOf<Form> = Form extends Verb ? Form['options'] : never

/** Defines a command from the manual, with one function for each of its verbs. */
export function command<Name extends CommandName>(
  name: Name,
  actions: { [Form in keyof Verbs<Name>]: (given: Values<OptionsOf<Verbs<Name>[Form]>>) => Promise<void> },
): Command {
  const page = manual[name]
  const verbs = page.verbs as Record<string, Verb>
  return {
    async run(args) {
      const [verb, rest] = Object.hasOwn(verbs, '') ? ['', args] : [args[0] ?? '', args.slice(1)]
      const form = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
      if (!form) throw new UsageError(`${unknownVerb(name, verb)}${usageOf(name, page)}`)
      const act = actions[verb as keyof typeof actions] as (given: unknown) => Promise<void>
      await act(readOptions(form.options, rest))
    },
  }
}

const unknownVerb = (name: CommandName, verb: string): string =>
  verb === ''
    ? ''
    : `Unknown subcommand "${verb}" of \`postern ${name}\`.${didYouMean(verb, Object.keys(manual[name].verbs))}\n\n`

export const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

/**
 * For text from a file that can be forged: escape sequences of terminals could replace the lines that were printed before, and
 * format characters change the order of what is read.
 */
export const withoutControls = (text: string): string =>
  text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  )

/** Prints a JSON document for programs, or text for people. */
export function print(isJson: boolean, document: object, text: () => string): void {
  say(isJson ? JSON.stringify(document, null, 2) : text())
}

/** Sets the exit code of a command that ran to completion but found a problem. */
export const endWith = (exit: keyof typeof exits): void => {
  process.exitCode = exits[exit].code
}

export const emailOf = (text: string): string => {
  const email = signInAddress(text)
  if (email === undefined)
    throw new UsageError(`"${text}" is not an email address that can be used to sign in.`)
  return email
}

export function reasonOf(text: string): string {
  try {
    return plainReason(text)
  } catch (error) {
    throw error instanceof PosternError ? new UsageError(error.message) : error
  }
}
