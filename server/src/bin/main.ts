import { UsageError } from '../platform/errors.ts'
import type { Command } from './command.ts'
import { errorHint } from './error-hints.ts'
import { type CommandName, exits, exitText, helpOf, type Manual, manual } from './manual.ts'
import { loadSettingsFile, splitSettingsFile } from './settings-file.ts'
import { didYouMean } from './suggestion.ts'

/** `postern <command>`. Each command is loaded on demand: `postern token` does not wait for the server's modules. */
const commands: Record<CommandName, () => Promise<Command>> = {
  all: async () => (await import('./all.ts')).all,
  api: async () => (await import('./api.ts')).api,
  worker: async () => (await import('./worker.ts')).worker,
  intake: async () => (await import('./intake.ts')).intake,
  signer: async () => (await import('./signer.ts')).signer,
  migrate: async () => (await import('./migrate.ts')).migrate,
  admin: async () => (await import('./admin.ts')).admin,
  users: async () => (await import('./users.ts')).users,
  token: async () => (await import('./token.ts')).token,
  secrets: async () => (await import('./secrets.ts')).secrets,
  audit: async () => (await import('./audit.ts')).audit,
  cell: async () => (await import('./cell.ts')).cell,
  setup: async () => (await import('./setup.ts')).setup,
  project: async () => (await import('./project.ts')).project,
  health: async () => (await import('./health.ts')).health,
  doctor: async () => (await import('./doctor.ts')).doctor,
  queue: async () => (await import('./queue.ts')).queue,
  policies: async () => (await import('./policies.ts')).policies,
  completion: async () => (await import('./completion.ts')).completion,
  version: async () => (await import('./version.ts')).version,
}

const usage = `Usage: postern [--settings <file>] <command>

${Object.entries(manual)
  .map(([name, { summary }]) => `  ${name.padEnd(12)}${summary}`)
  .join('\n')}

Run \`postern <command> --help\` for a command's options. Settings are read from the environment, then from the
--settings file. docs/operations/configuration.md lists every setting, docs/operations/command.md every command.

${exitText}
`

const isHelp = (word: string): boolean => word === '--help' || word === '-h'
const isCommand = (name: string): name is CommandName => Object.hasOwn(commands, name)

const { settingsFile, rest } = splitSettingsFile(process.argv.slice(2))
const [first = '', ...args] = rest
const name = first === '--version' || first === '-V' ? 'version' : first

if (name === '' || name === 'help' || isHelp(name)) {
  process.stdout.write(usage)
} else if (!isCommand(name)) {
  const hint = didYouMean(name, Object.keys(manual))
  process.stderr.write(`Unknown command "${name}".${hint}\nRun \`postern --help\` for a list of commands.\n`)
  process.exitCode = exits.misused.code
} else if (args.some(isHelp)) {
  process.stdout.write(helpOf(name, manual[name] as Manual))
} else {
  try {
    loadSettingsFile(settingsFile)
    await (await commands[name]()).run(args)
  } catch (error) {
    const sentence = error instanceof UsageError ? error.message : errorHint(error)
    if (sentence === undefined) throw error
    process.stderr.write(`${sentence}\n`)
    process.exitCode = error instanceof UsageError ? exits.misused.code : exits.failed.code
  }
}
