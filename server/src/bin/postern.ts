#!/usr/bin/env node
import manifest from '../../package.json' with { type: 'json' }
import { UsageError } from '../platform/errors.ts'
import type { Command } from './command.ts'
import { explain } from './explain.ts'

interface Entry {
  summary: string
  /** Loaded when it is asked for: printing a token should not wait for what serves and sends. */
  load(): Promise<Command>
}

/** `postern <command>`. Exit codes: 0 done, 1 failed, 2 called in a way that cannot work. */
const commands: Record<string, Entry> = {
  all: {
    summary: 'api, worker and intake in one process, for a small installation.',
    load: async () => (await import('./all.ts')).all,
  },
  api: { summary: 'Serve the HTTP interface.', load: async () => (await import('./api.ts')).api },
  worker: {
    summary: 'Do what nobody calls for: providers, DNS checks, audit checkpoints.',
    load: async () => (await import('./worker.ts')).worker,
  },
  intake: {
    summary: 'Take in mail of customers, bounces, delivery reports and complaints by SMTP.',
    load: async () => (await import('./intake.ts')).intake,
  },
  migrate: {
    summary: 'Bring the database to the version of this program.',
    load: async () => (await import('./migrate.ts')).migrate,
  },
  admin: {
    summary: 'Make an administrator, give one new credentials, or link one to an outside issuer.',
    load: async () => (await import('./admin.ts')).admin,
  },
  token: {
    summary: "Print an administrator's access token, good for ten minutes.",
    load: async () => (await import('./token.ts')).token,
  },
  secrets: {
    summary: 'Show which master keys are in use, or bring every project key under the first one.',
    load: async () => (await import('./secrets.ts')).secrets,
  },
  audit: {
    summary: 'Verify the audit, export it, sign a checkpoint of it, or erase a person from it.',
    load: async () => (await import('./audit.ts')).audit,
  },
}

const usage = `Usage: postern <command>

${Object.entries(commands)
  .map(([name, { summary }]) => `  ${name.padEnd(10)}${summary}`)
  .join('\n')}

Configuration is read from the environment; docs/operations/configuration.md lists every variable.
`

const [name = '', ...args] = process.argv.slice(2)
const command = Object.hasOwn(commands, name) ? commands[name] : undefined

if (['version', '--version', '-V'].includes(name)) {
  process.stdout.write(`postern ${manifest.version}\n`)
} else if (['', 'help', '--help', '-h'].includes(name)) {
  process.stdout.write(usage)
} else if (!command) {
  process.stderr.write(`There is no command "${name}".\n\n${usage}`)
  process.exitCode = 2
} else {
  try {
    await (await command.load()).run(args)
  } catch (error) {
    const sentence = error instanceof UsageError ? error.message : explain(error)
    if (sentence === undefined) throw error
    process.stderr.write(`${sentence}\n`)
    process.exitCode = error instanceof UsageError ? 2 : 1
  }
}
