#!/usr/bin/env node
import manifest from '../../package.json' with { type: 'json' }
import { UsageError } from '../platform/errors.ts'
import { admin } from './admin.ts'
import { all } from './all.ts'
import { api } from './api.ts'
import { audit } from './audit.ts'
import type { Command } from './command.ts'
import { explain } from './explain.ts'
import { intake } from './intake.ts'
import { migrate } from './migrate.ts'
import { secrets } from './secrets.ts'
import { token } from './token.ts'
import { worker } from './worker.ts'

/** `postern <command>`. Exit codes: 0 done, 1 failed, 2 called in a way that cannot work. */
const commands: Record<string, Command> = { all, api, worker, intake, migrate, admin, token, secrets, audit }

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
    await command.run(args)
  } catch (error) {
    const sentence = error instanceof UsageError ? error.message : explain(error)
    if (sentence === undefined) throw error
    process.stderr.write(`${sentence}\n`)
    process.exitCode = error instanceof UsageError ? 2 : 1
  }
}
