import { publicKeyOf, signingKeyOf, writeKeys } from '../core/control/audit/keys.ts'
import { askSigner } from '../core/control/audit/signer-messages.ts'
import { type Check, type DoctorContext, type Finding, failure, messageOf, ok, warning } from './check.ts'

/** Whether the key that signs checkpoints is out of reach of the processes whose doings they prove. */
export const signerCheck: Check = {
  name: 'audit.signer',
  async look({ settings }) {
    if (settings.auditPublicKeys.size === 0) {
      return [
        warning(
          'The API and the worker have the key that signs checkpoints of the audit: it is derived from a master key.',
          'Run `postern signer` as a user of its own: see "The signer" in docs/operations/audit.md.',
        ),
      ]
    }
    if (settings.signerKey !== undefined) {
      return [
        failure(
          'POSTERN_SIGNER_KEY is in the environment of this process, which can therefore sign a forged audit.',
          'Make a new key, and let only the user of `postern signer` read it. Remove the old one from these settings.',
        ),
      ]
    }
    const { auditSignerSocket: socket } = settings
    if (socket === undefined)
      return [ok('The signer runs beside another worker (POSTERN_AUDIT_SIGNER_SOCKET is empty).')]
    return [await answers(socket, settings)]
  },
}

async function answers(
  socket: string,
  { auditPublicKeys, masterKeys }: DoctorContext['settings'],
): Promise<Finding> {
  try {
    const answer = await askSigner(socket, { type: 'status' })
    if (answer.type !== 'status') throw new Error('it does not say what its key is')
    const { public_key: key } = answer
    if (!writeKeys(auditPublicKeys).includes(key)) {
      return failure(
        `The signer at ${socket} has a key that is not in POSTERN_AUDIT_PUBLIC_KEYS.`,
        `If it is yours, put it first: ${key}`,
      )
    }
    const hexOf = (line = '') => line.split(':')[1]
    if (masterKeys.some((master) => hexOf(writeKeys(publicKeyOf(signingKeyOf(master)))[0]) === hexOf(key))) {
      return failure(
        'The signer has a key that is derived from a master key, which this process has, too.',
        'Give it a key of its own, under a new name: signer-2:$(openssl rand -hex 32).',
      )
    }
    return ok(`The signer answers at ${socket}, and this process does not have its key.`)
  } catch (error) {
    return failure(
      `Checkpoints of the audit cannot be signed: ${messageOf(error)}.`,
      'Start `postern signer`, and let the user of `postern worker` be in the group of its socket.',
    )
  }
}
