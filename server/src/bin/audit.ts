import { randomUUIDv7 } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { loadConfig } from '../config.ts'
import { beganLate, catchUpFile } from '../core/audit/checkpoint-file.ts'
import { makeCheckpoints } from '../core/audit/checkpoints.ts'
import { exportAudit, isMoment } from '../core/audit/export.ts'
import { readKeys, verifyingKeysOf, writeKeys } from '../core/audit/keys.ts'
import { erasePerson } from '../core/audit/people.ts'
import { type Verification, verifyAudit, verifyExport } from '../core/audit/verify.ts'
import { plainReason } from '../core/text.ts'
import { PosternError, UsageError } from '../platform/errors.ts'
import { type Command, options, say, withContext } from './command.ts'

const usage = `Usage:
  postern audit verify [--checkpoints <file>] [--public-key <id:hex> …]
  postern audit verify --file <export> … [--checkpoints <file>] [--public-key <id:hex> …]
  postern audit export [--out <file>] [--project <id>] [--after <"next" of an earlier export>]
  postern audit checkpoint
  postern audit key
  postern audit erase --email <address> --reason <why>`

const verbs: Record<string, (args: string[]) => Promise<void>> = {
  verify,
  export: exportTo,
  checkpoint,
  key,
  erase,
}

export const audit: Command = {
  async run([verb = '', ...args]) {
    const run = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
    if (!run) throw new UsageError(usage)
    await run(args)
  },
}

/** Options that may be left out; those in `lists` may be repeated. */
function optional<Name extends string, List extends string = never>(
  args: string[],
  names: readonly Name[],
  lists: readonly List[] = [],
): Partial<Record<Name, string>> & Record<List, string[]> {
  const text = { type: 'string' as const }
  const shape = Object.fromEntries([
    ...names.map((name) => [name, text] as const),
    ...lists.map((name) => [name, { ...text, multiple: true, default: [] as string[] }] as const),
  ])
  try {
    return parseArgs({ args, options: shape, strict: true }).values as never
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function verify(args: string[]): Promise<void> {
  const given = optional(args, ['checkpoints'], ['file', 'public-key'])
  const keys = readKeys(given['public-key'])
  for (const path of [...given.file, given.checkpoints]) {
    if (path !== undefined && !existsSync(path)) throw new UsageError(`There is no file ${path}.`)
  }
  const onProgress = progress('rows verified')
  const verification =
    given.file.length > 0
      ? await verifyExport(given.file, { keys, checkpointFile: given.checkpoints, onProgress })
      : await withContext(({ db, config }) =>
          verifyAudit(db.admin, {
            keys: new Map([...keys, ...verifyingKeysOf(config.masterKeys)]),
            checkpointFile: given.checkpoints ?? config.auditCheckpointFile,
            onProgress,
          }),
        )
  endProgress()
  show(verification)
}

/** Exit codes of `audit verify` besides those of every command: 1 is a finding. */
const notProved = 3

function show({ first_bad, signed, rows, chains, checkpoints, erased, notes }: Verification): void {
  const extent = `(rows: ${rows}, chains: ${chains}, checkpoints: ${checkpoints}, erased persons: ${erased})`
  if (first_bad !== null) {
    process.stderr.write(`The audit is NOT as it was written. ${first_bad.problem}\n`)
    process.stderr.write(`Read so far ${extent}.\n`)
    process.exitCode = 1
  } else if (signed || rows === 0) {
    say(`The audit is as it was written ${extent}.`)
  } else {
    say(
      `NOT PROVED. The hashes agree with each other, which anybody can make so, and no signature was checked ${extent}.`,
    )
    process.exitCode = notProved
  }
  for (const note of notes) say(`Note: ${note}`)
}

async function exportTo(args: string[]): Promise<void> {
  const { out, project, after } = optional(args, ['out', 'project', 'after'])
  if (project !== undefined && !/^(0|[1-9]\d{0,14})$/.test(project)) {
    throw new UsageError(
      `--project takes the id of a project, or 0 for what belongs to none, not "${project}".`,
    )
  }
  if (after !== undefined && !isMoment(after)) {
    throw new UsageError('--after takes the "next" of an earlier export\'s last line, unchanged.')
  }
  const wanted = { projectId: project === undefined ? undefined : Number(project), after }
  await withContext(async ({ db }) => {
    try {
      const lines = counted(exportAudit(db.admin, wanted))
      await (out === undefined ? toStandardOutput(lines) : toFile(lines, out))
    } catch (error) {
      if (error instanceof PosternError && error.code === 'invalid_parameter')
        throw new UsageError(error.message)
      throw error
    }
  })
  endProgress()
}

async function* counted(lines: AsyncIterable<string>): AsyncGenerator<string> {
  const onProgress = progress('lines exported')
  let count = 0
  for await (const line of lines) {
    count++
    if (count % 1000 === 0) onProgress(count)
    yield line
  }
}

async function toStandardOutput(lines: AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(lines), process.stdout, { end: false })
  } catch (error) {
    // Whoever reads has seen enough (`| head`).
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}

/** Never over an older export, which may be the only witness. */
async function toFile(lines: AsyncIterable<string>, path: string): Promise<void> {
  const file = await open(path, 'wx').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'EEXIST' ? `${path} is there already; choose another name.` : error.message,
    )
  })
  try {
    await pipeline(Readable.from(lines), file.createWriteStream({ flush: true }))
  } finally {
    await file.close()
  }
  say(`Written to ${path}.`)
}

async function checkpoint(args: string[]): Promise<void> {
  options(args)
  await withContext(async ({ db, config }) => {
    const made = await makeCheckpoints(db.admin, config.masterKeys)
    say(made === 0 ? 'Nothing has changed since the last checkpoint.' : `Made: ${made}.`)
    const { auditCheckpointFile: file } = config
    if (file === undefined) return
    try {
      const { appended, beganLateWith } = await catchUpFile(db.admin, file)
      say(`Lines added to ${file}: ${appended}.`)
      if (beganLateWith !== null) process.stderr.write(`${beganLate(file, beganLateWith)}.\n`)
    } catch (error) {
      process.stderr.write(`The checkpoint file is not up to date: ${(error as Error).message}.\n`)
      process.exitCode = 1
    }
  })
}

async function key(args: string[]): Promise<void> {
  options(args)
  for (const line of writeKeys(verifyingKeysOf(loadConfig(process.env).masterKeys))) say(line)
}

async function erase(args: string[]): Promise<void> {
  const { email, reason } = options(args, ['email', 'reason'])
  if (reason.toLowerCase().includes(email.toLowerCase())) {
    throw new UsageError('The reason is kept for ever: leave the address out of it.')
  }
  const why = reasonOf(reason)
  const rows = await withContext(({ db }) =>
    db.admin.transaction((tx) => erasePerson(tx, { email, requestId: randomUUIDv7(), reason: why })),
  )
  say(
    rows === 0 ? `${email} is not in the audit.` : `Rows of the audit that no longer name ${email}: ${rows}.`,
  )
}

function reasonOf(text: string): string {
  try {
    return plainReason(text)
  } catch (error) {
    throw error instanceof PosternError ? new UsageError(error.message) : error
  }
}

/** A log or a pipe has no use for it. */
const progress =
  (what: string) =>
  (count: number): void => {
    if (process.stderr.isTTY) process.stderr.write(`\r${count} ${what}`)
  }

const endProgress = (): void => {
  if (process.stderr.isTTY) process.stderr.write('\n')
}
