import { randomUUIDv7 } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { loadConfig } from '../config/config.ts'
import { auditSignerOf } from '../context/context.ts'
import { type ActivityVerification, verifyActivity } from '../core/control/activity/verify.ts'
import { type CaughtUp, catchUpFile, newFileWarning } from '../core/control/audit/checkpoint-file.ts'
import { makeCheckpoints, makeCheckpointsBy } from '../core/control/audit/checkpoints.ts'
import { erasePerson } from '../core/control/audit/erasure.ts'
import { exportAudit, isSnapshot } from '../core/control/audit/export.ts'
import { readKeys, trustedKeysOf, type VerifyingKeys, writeKeys } from '../core/control/audit/keys.ts'
import { type Verification, verifyAudit, verifyExport } from '../core/control/audit/verify.ts'
import { verifyEvidenceFile } from '../core/control/evidence/verify.ts'
import { PosternError, UsageError } from '../platform/errors.ts'
import { command, endWith, print, reasonOf, say, withoutControls } from './command.ts'
import type { manual } from './manual.ts'
import type { Values } from './options.ts'
import { Progress } from './progress.ts'
import { withContext } from './with-context.ts'

type Given<Verb extends keyof typeof manual.audit.verbs> = Values<
  (typeof manual.audit.verbs)[Verb]['options']
>

/** `postern audit`: verifies and exports the audit log, signs checkpoints, prints keys and erases personal data. */
export const audit = command('audit', { verify, export: exportTo, checkpoint, key, erase })

async function verify({
  file,
  evidence,
  checkpoints,
  'public-key': publicKeys,
  json,
}: Given<'verify'>): Promise<void> {
  const keys = readKeys(publicKeys)
  for (const path of [...file, evidence, checkpoints]) {
    if (path !== undefined && !existsSync(path)) throw new UsageError(`File not found: ${path}`)
  }
  if (evidence !== undefined) {
    if (file.length > 0 || checkpoints !== undefined)
      throw new UsageError('--evidence cannot be combined with --file or --checkpoints.')
    return verifyEvidence(evidence, keys, json)
  }
  const progress = new Progress('rows verified')
  const onProgress = progress.show
  const { activity, ...verification } =
    file.length > 0
      ? { ...(await verifyExport(file, { keys, checkpointFile: checkpoints, onProgress })), activity: null }
      : await withContext(async ({ db, config }) => ({
          ...(await verifyAudit(db.admin, {
            keys: new Map([...keys, ...trustedKeysOf(config)]),
            checkpointFile: checkpoints ?? config.auditCheckpointFile,
            isFileFirst: config.auditPublicKeys.size > 0,
            onProgress,
          })),
          activity: await verifyActivity(db.admin),
        }))
  progress.end()
  const { first_bad, signed, rows } = verification
  const isProved = signed || rows === 0
  if (json) print(json, { ...verification, activity }, () => '')
  else {
    show(verification, isProved)
    if (activity) showActivity(activity)
  }
  if (first_bad !== null || activity?.ok === false) endWith('failed')
  else if (!isProved) endWith('notProved')
}

async function verifyEvidence(path: string, keys: VerifyingKeys, json: boolean): Promise<void> {
  const verification = await verifyEvidenceFile(path, keys)
  const { first_bad, signed, lines, acts, evidence, notes } = verification
  if (json) print(json, verification, () => '')
  else if (first_bad !== null) {
    process.stderr.write(
      `The file was ALTERED. Line ${first_bad.line}: ${withoutControls(first_bad.problem)}\n`,
    )
  } else {
    const extent = `(lines: ${lines}, audit entries: ${acts})`
    say(
      signed
        ? `The file is intact and was signed at ${evidence?.signed_at} ${extent}.`
        : `NOT PROVED. The hashes are consistent, but the signature was not checked: a forged file would also pass ${extent}.`,
    )
    say(
      `Evidence ${evidence?.id} about project ${evidence?.project_id}, ${evidence?.from} to ${evidence?.to}.`,
    )
    for (const note of notes) say(`Note: ${withoutControls(note)}`)
  }
  if (first_bad !== null) endWith('failed')
  else if (!signed) endWith('notProved')
}

function show(
  { first_bad, rows, chains, checkpoints, erased, notes }: Verification,
  isProved: boolean,
): void {
  const extent = `(rows: ${rows}, chains: ${chains}, checkpoints: ${checkpoints}, erased persons: ${erased})`
  if (first_bad !== null) {
    process.stderr.write(`The audit log was ALTERED. ${withoutControls(first_bad.problem)}\n`)
    process.stderr.write(`Checked so far ${extent}.\n`)
  } else if (isProved) {
    say(`The audit log is intact ${extent}.`)
  } else {
    say(
      `NOT PROVED. The hashes are consistent, but no signature was checked: a forged log would also pass ${extent}.`,
    )
  }
  for (const note of notes) say(`Note: ${withoutControls(note)}`)
}

function showActivity({ first_bad, rows, chains, erased }: ActivityVerification): void {
  const extent = `(rows: ${rows}, chains: ${chains}, erased entries: ${erased})`
  if (first_bad === null) {
    say(`The activity log of projects and users has consistent hashes ${extent}; it is not signed.`)
  } else {
    process.stderr.write(`The activity log was ALTERED. ${withoutControls(first_bad.problem)}\n`)
  }
}

async function exportTo({ out, project, after, json }: Given<'export'>): Promise<void> {
  if (project !== undefined && !/^(0|[1-9]\d{0,14})$/.test(project)) {
    throw new UsageError(
      `--project must be a project id, or 0 for entries without a project, not "${project}".`,
    )
  }
  if (after !== undefined && !isSnapshot(after)) {
    throw new UsageError('--after must be the value of "next" from the last line of an earlier export.')
  }
  if (json && out === undefined) {
    throw new UsageError('--json requires --out: without it, the export itself is printed as JSON lines.')
  }
  const wanted = { projectId: project === undefined ? undefined : Number(project), after }
  const progress = new Progress('lines exported')
  await withContext(async ({ db }) => {
    try {
      const tally = { lines: 0 }
      const lines = counted(exportAudit(db.admin, wanted), tally, progress)
      if (out === undefined) return await toStandardOutput(lines)
      await toFile(lines, out)
      progress.end()
      print(json, { file: out, lines: tally.lines }, () => `Wrote ${out}.`)
    } catch (error) {
      if (error instanceof PosternError && error.code === 'invalid_parameter')
        throw new UsageError(error.message)
      throw error
    }
  })
}

async function* counted(
  lines: AsyncIterable<string>,
  tally: { lines: number },
  progress: Progress,
): AsyncGenerator<string> {
  for await (const line of lines) {
    tally.lines++
    if (tally.lines % 1000 === 0) progress.show(tally.lines)
    yield line
  }
}

async function toStandardOutput(lines: AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(lines), process.stdout, { end: false })
  } catch (error) {
    // The reader closed the pipe (`| head`).
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}

/** Never overwrites an older export, because it may be the only evidence. */
async function toFile(lines: AsyncIterable<string>, path: string): Promise<void> {
  const file = await open(path, 'wx').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'EEXIST' ? `${path} already exists. Choose another name.` : error.message,
    )
  })
  try {
    await pipeline(Readable.from(lines), file.createWriteStream({ flush: true }))
  } finally {
    await file.close()
  }
}

async function checkpoint({ json }: Given<'checkpoint'>): Promise<void> {
  await withContext(async ({ db, config }) => {
    const signer = auditSignerOf(config)
    if (signer === 'elsewhere') {
      throw new UsageError(
        "Only the signer has the key: run this on the signer's machine, with POSTERN_AUDIT_SIGNER_SOCKET set.",
      )
    }
    const made = signer
      ? await makeCheckpointsBy(signer, db.admin)
      : await makeCheckpoints(db.admin, config.masterKeys)
    // The signer writes its file before it returns a signature.
    const file = signer ? undefined : config.auditCheckpointFile
    const caughtUp = file === undefined ? undefined : await catchUp(() => catchUpFile(db.admin, file))
    const appended = caughtUp && 'appended' in caughtUp ? caughtUp.appended : null
    print(json, { made, file: file ?? null, appended }, () =>
      [
        made === 0 ? 'No new entries since the last checkpoint.' : `Checkpoints signed: ${made}.`,
        ...(appended === null ? [] : [`Lines added to ${file}: ${appended}.`]),
      ].join('\n'),
    )
    if (caughtUp && 'fault' in caughtUp) {
      process.stderr.write(`The checkpoint file is not up to date: ${caughtUp.fault}.\n`)
      endWith('failed')
    } else if (file !== undefined && caughtUp && caughtUp.beganLateWith !== null) {
      process.stderr.write(`${newFileWarning(file, caughtUp.beganLateWith)}.\n`)
    }
  })
}

const catchUp = (work: () => Promise<CaughtUp>): Promise<CaughtUp | { fault: string }> =>
  work().catch((error: Error) => ({ fault: error.message }))

async function key({ json }: Given<'key'>): Promise<void> {
  const lines = writeKeys(trustedKeysOf(loadConfig(process.env)))
  print(json, { public_keys: lines }, () => lines.join('\n'))
}

async function erase({ email, reason, json }: Given<'erase'>): Promise<void> {
  if (reason.toLowerCase().includes(email.toLowerCase())) {
    throw new UsageError('The reason is stored permanently: do not include the address in it.')
  }
  const why = reasonOf(reason)
  const rows = await withContext(({ db }) =>
    db.admin.transaction((tx) => erasePerson(tx, { email, requestId: randomUUIDv7(), reason: why })),
  )
  print(json, { email, rows }, () =>
    rows === 0
      ? `The audit log does not contain ${email}.`
      : `Audit entries from which ${email} was erased: ${rows}.`,
  )
}
