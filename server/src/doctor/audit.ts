import { constants } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import path from 'node:path'
import { unsignedSeconds } from './audit.sql.ts'
import { type Check, type Finding, failure, messageOf, ok, warning } from './check.ts'
import { durationText } from './duration.ts'

export const auditChecks: Check[] = [
  {
    name: 'audit.checkpoints',
    needs: 'tables',
    async run({ db }) {
      const seconds = await db.readOne(unsignedSeconds)
      // The worker signs once a minute.
      if (seconds === null || seconds < 5 * 60) return [ok('Every audit entry is covered by a checkpoint.')]
      return [
        failure(
          `Audit entries have not been covered by a checkpoint for ${durationText(seconds)}: their removal would go unnoticed.`,
          'Start `postern worker`, or search its log for "audit checkpoint"; `postern audit checkpoint` signs one now.',
        ),
      ]
    },
  },
  {
    name: 'audit.file',
    async run({ settings: { auditCheckpointFile: file, auditPublicKeys } }) {
      if (file === undefined) {
        return [
          failure(
            'Checkpoints are stored in the database only (POSTERN_AUDIT_CHECKPOINT_FILE is empty): if the newest entries are removed together with their checkpoints, the removal cannot be detected.',
            'Set it to the checkpoint file of `postern signer`, or to a file that is stored on another machine.',
          ),
        ]
      }
      return [auditPublicKeys.size > 0 ? await signedFileFinding(file) : await fileFinding(file)]
    },
  },
]

// The file grows by one line for each minute with a change: at most 600 KB, usually a few hundred octets.
const scarceBytes = 1024 ** 3
const fullBytes = 64 * 1024 ** 2

/** The file belongs to the signer. This process should be able to read the file but not change it. */
async function signedFileFinding(file: string): Promise<Finding> {
  const folder = path.dirname(path.resolve(file))
  const may = (what: string, how: number) =>
    access(what, how).then(
      () => true,
      () => false,
    )
  if ((await may(file, constants.W_OK)) || (await may(folder, constants.W_OK))) {
    // Root can write everywhere.
    if (process.getuid?.() !== 0) {
      return failure(
        `The Postern user can write to ${file} or its directory, so the worker could forge checkpoints.`,
        'Make the `postern signer` user its owner, and give Postern read access only: mode 0640, in a directory of mode 0750.',
      )
    }
  }
  // The file does not exist before the first checkpoint.
  const readable = (await may(file, constants.F_OK)) ? may(file, constants.R_OK) : may(folder, constants.X_OK)
  if (await readable)
    return ok(`The signer writes checkpoints to ${file}, and the Postern user cannot change them.`)
  return failure(
    `The signer's checkpoint file cannot be read: ${file}.`,
    'Add the Postern user to the group of `postern signer`.',
  )
}

async function fileFinding(file: string): Promise<Finding> {
  const folder = path.dirname(path.resolve(file))
  try {
    const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return undefined
    })
    if (found && !found.isFile()) throw new Error('it is not a file')
    await access(found ? file : folder, constants.W_OK)
    const { bavail, bsize } = await statfs(folder)
    const freeBytes = bavail * bsize
    const room = `Only ${Math.round(freeBytes / 1024 ** 2)} MB are free on the disk that contains ${file}.`
    const remedy = 'Free disk space, or move the file and change POSTERN_AUDIT_CHECKPOINT_FILE.'
    if (freeBytes < fullBytes) return failure(room, remedy)
    if (freeBytes < scarceBytes) return warning(room, remedy)
    return ok(`Checkpoints can be appended to ${file}.`)
  } catch (error) {
    return failure(
      `Checkpoints cannot be appended to ${file}: ${messageOf(error)}.`,
      'Create its directory, and give the `postern worker` user write access.',
    )
  }
}
