import { publicKeyOf, signingKeyOf, writeKeys } from '../core/control/audit/keys.ts'
import { askSigner } from '../core/control/audit/signer-messages.ts'
import { type Check, type DoctorContext, type Finding, failure, messageOf, ok, warning } from './check.ts'

/** Checks that the processes whose actions are audited cannot read the key that signs checkpoints. */
export const signerCheck: Check = {
  name: 'audit.signer',
  async run({ settings }) {
    if (settings.auditPublicKeys.size === 0) {
      return [
        warning(
          'The API and the worker have the key that signs audit checkpoints: it is derived from a master key.',
          'Run `postern signer` as a separate user: see "The signer" in docs/operations/audit.md.',
        ),
      ]
    }
    if (settings.signerKey !== undefined) {
      return [
        failure(
          'POSTERN_SIGNER_KEY is in the environment of this process, which can therefore sign a forged audit log.',
          'Create a new key that only the `postern signer` user can read, and remove the old one from these settings.',
        ),
      ]
    }
    const { auditSignerSocket: socket } = settings
    if (socket === undefined)
      return [ok('Another worker uses the signer (POSTERN_AUDIT_SIGNER_SOCKET is empty here).')]
    return [await signerFinding(socket, settings)]
  },
}

async function signerFinding(
  socket: string,
  { auditPublicKeys, masterKeys }: DoctorContext['settings'],
): Promise<Finding> {
  try {
    const answer = await askSigner(socket, { type: 'status' })
    if (answer.type !== 'status') throw new Error('its status contains no key')
    const { public_key: key } = answer
    if (!writeKeys(auditPublicKeys).includes(key)) {
      return failure(
        `The signer at ${socket} has a key that is not in POSTERN_AUDIT_PUBLIC_KEYS.`,
        `If the key is yours, put it first in the list: ${key}`,
      )
    }
    const hexOf = (line = '') => line.split(':')[1]
    if (masterKeys.some((master) => hexOf(writeKeys(publicKeyOf(signingKeyOf(master)))[0]) === hexOf(key))) {
      return failure(
        "The signer's key is derived from a master key, which this process also has.",
        'Give the signer a separate key, under a new name: signer-2:$(openssl rand -hex 32).',
      )
    }
    return ok(`The signer responds at ${socket}, and this process does not have its key.`)
  } catch (error) {
    return failure(
      `Audit checkpoints cannot be signed: ${messageOf(error)}.`,
      "Start `postern signer`, and add the `postern worker` user to its socket's group.",
    )
  }
}
