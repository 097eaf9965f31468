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
    async look({ db }) {
      const seconds = await db.readOne(unsignedSeconds)
      // Signed once a minute.
      if (seconds === null || seconds < 5 * 60) return [ok('Every row of the audit has its checkpoint.')]
      return [
        failure(
          `Rows of the audit have waited for a checkpoint for ${durationText(seconds)}: a cut-off end would not be noticed.`,
          'Start `postern worker`, or look at its log for "audit checkpoint"; `postern audit checkpoint` signs at once.',
        ),
      ]
    },
  },
  {
    name: 'audit.file',
    async look({ settings: { auditCheckpointFile: file, auditPublicKeys } }) {
      if (file === undefined) {
        return [
          failure(
            'Checkpoints are in the database alone (POSTERN_AUDIT_CHECKPOINT_FILE is empty): rows that are cut off together with their checkpoints would not be noticed.',
            'Set it to the file of `postern signer`, or to a file on storage of another machine.',
          ),
        ]
      }
      return [auditPublicKeys.size > 0 ? await signedFileFinding(file) : await fileFinding(file)]
    },
  },
]

// A line for each minute with a change: 600 KB at most, mostly a few hundred octets.
const scarceBytes = 1024 ** 3
const fullBytes = 64 * 1024 ** 2

/** The signer's, which this process is to read and not to change. */
async function signedFileFinding(file: string): Promise<Finding> {
  const folder = path.dirname(path.resolve(file))
  const may = (what: string, how: number) =>
    access(what, how).then(
      () => true,
      () => false,
    )
  if ((await may(file, constants.W_OK)) || (await may(folder, constants.W_OK))) {
    // Root may write everywhere.
    if (process.getuid?.() !== 0) {
      return failure(
        `The user of Postern may write to ${file} or its folder, so the worker can forge checkpoints.`,
        'Let it belong to the user of `postern signer`, and let Postern only read it: mode 0640, in a folder of mode 0750.',
      )
    }
  }
  // Before the first checkpoint there is none.
  const readable = (await may(file, constants.F_OK)) ? may(file, constants.R_OK) : may(folder, constants.X_OK)
  if (await readable)
    return ok(`The signer keeps its checkpoints in ${file}, where the user of Postern cannot change them.`)
  return failure(
    `The checkpoints of the signer cannot be read from ${file}.`,
    'Let the user of Postern be in the group of `postern signer`.',
  )
}

async function fileFinding(file: string): Promise<Finding> {
  const folder = path.dirname(path.resolve(file))
  try {
    const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return undefined
    })
    if (found && !found.isFile()) throw new Error('it is no file')
    await access(found ? file : folder, constants.W_OK)
    const { bavail, bsize } = await statfs(folder)
    const freeBytes = bavail * bsize
    const room = `${Math.round(freeBytes / 1024 ** 2)} MB are left where ${file} is.`
    const remedy = 'Make room there, or move the file and set POSTERN_AUDIT_CHECKPOINT_FILE anew.'
    if (freeBytes < fullBytes) return failure(room, remedy)
    if (freeBytes < scarceBytes) return warning(room, remedy)
    return ok(`Checkpoints can be appended to ${file}.`)
  } catch (error) {
    return failure(
      `Checkpoints cannot be appended to ${file}: ${messageOf(error)}.`,
      'Make its folder, and let the user of `postern worker` write there.',
    )
  }
}
