import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { promisify } from 'node:util'
import { settings } from '../../config/table.ts'
import { UsageError } from '../../platform/errors.ts'
import { Wrong } from '../../platform/settings.ts'
import { emailOf } from '../command.ts'

/** The answers to the questions of `postern setup`. Each has an option; on a terminal, the missing ones are asked. */
export interface Answers {
  host: string
  returnPathHost: string
  systemMailFrom: string
  frontEnd: FrontEnd
  /** Undefined if no administrator is to be created. */
  admin: string | undefined
}

export const frontEnds = ['caddy', 'nginx', 'none'] as const
export type FrontEnd = (typeof frontEnds)[number]

export type Given = { [Option in Question['option']]?: string | undefined }

type Known = Partial<Record<keyof Answers, string>>

interface Question {
  option: 'host' | 'admin' | 'return-path-host' | 'front-end' | 'system-mail-from'
  answer: keyof Answers
  text: string
  /** Undefined if there is none: the option is then required without a terminal. */
  suggestion(known: Known): Promise<string | undefined> | string | undefined
  /** Throws `Wrong` or `UsageError`. */
  parse(text: string): string
}

const questions: readonly Question[] = [
  {
    option: 'host',
    answer: 'host',
    text: 'Host name of this installation',
    suggestion: fullHostName,
    parse: (text) => settings.returnPathHost.parse(text) ?? '',
  },
  {
    option: 'admin',
    answer: 'admin',
    text: 'Email address of the first administrator',
    suggestion: () => undefined,
    parse: emailOf,
  },
  {
    option: 'return-path-host',
    answer: 'returnPathHost',
    text: 'Host that receives bounces',
    suggestion: ({ host }) => `bounces.${host}`,
    parse: (text) => settings.returnPathHost.parse(text) ?? '',
  },
  {
    option: 'front-end',
    answer: 'frontEnd',
    text: `Reverse proxy for HTTPS (${frontEnds.join(', ')})`,
    suggestion: () =>
      existsSync('/usr/bin/caddy') ? 'caddy' : existsSync('/usr/sbin/nginx') ? 'nginx' : 'none',
    parse(text) {
      const found = frontEnds.find((name) => name === text)
      if (found === undefined) throw new Wrong(`must be one of ${frontEnds.join(', ')}`)
      return found
    },
  },
  {
    option: 'system-mail-from',
    answer: 'systemMailFrom',
    text: 'Sender of invitations and password links',
    suggestion: ({ host }) => `postern@${host}`,
    parse: (text) => settings.systemMailFrom.parse(text) ?? '',
  },
]

/** With `isAsking`, asks for what is not given; otherwise uses the suggestions. No administrator is created without one. */
export async function readAnswers(
  given: Given,
  { isAsking, withAdmin }: { isAsking: boolean; withAdmin: boolean },
): Promise<Answers> {
  const terminal = isAsking ? createInterface({ input: process.stdin, output: process.stderr }) : undefined
  const known: Known = {}
  const missing: string[] = []
  try {
    for (const question of questions) {
      const { option, answer } = question
      if (answer === 'admin' && !withAdmin) continue
      const text = given[option]
      const suggestion = await question.suggestion(known)
      if (text !== undefined) known[answer] = parsed(question, text)
      else if (terminal) known[answer] = await ask(terminal, question, suggestion)
      else if (suggestion !== undefined) known[answer] = suggestion
      else missing.push(`--${option}`)
    }
  } finally {
    terminal?.close()
  }
  if (missing.length > 0) throw new UsageError(`Missing option: ${missing.join(', ')}`)
  return { admin: undefined, ...(known as Omit<Answers, 'admin'>) }
}

/** Rejects invalid options that have no effect, because the settings exist. */
export function checkGiven(given: Given): void {
  for (const question of questions) {
    const text = given[question.option]
    if (text !== undefined) parsed(question, text)
  }
}

function parsed({ option, parse }: Question, text: string): string {
  try {
    return parse(text)
  } catch (error) {
    throw error instanceof Wrong ? new UsageError(`--${option} ${error.message}`) : error
  }
}

async function ask(
  terminal: ReturnType<typeof createInterface>,
  question: Question,
  suggestion: string | undefined,
): Promise<string> {
  for (;;) {
    const typed = await terminal.question(`${question.text}${suggestion ? ` [${suggestion}]` : ''}: `)
    try {
      return question.parse(typed.trim() || (suggestion ?? ''))
    } catch (error) {
      if (!(error instanceof Wrong || error instanceof UsageError)) throw error
      process.stderr.write(`${error instanceof Wrong ? `The answer ${error.message}` : error.message}\n`)
    }
  }
}

/** Undefined if the machine has no name with a domain. */
async function fullHostName(): Promise<string | undefined> {
  const { stdout } = await promisify(execFile)('hostname', ['--fqdn'], { timeout: 5_000 }).catch(() => ({
    stdout: '',
  }))
  const name = stdout.trim()
  return name.includes('.') && !name.startsWith('localhost') ? name : undefined
}
