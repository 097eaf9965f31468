/**
 * The Ed25519 keys that sign checkpoints. `postern signer` has its own key. Without a signer, a key is derived from each
 * master key, so no additional secret has to be stored. The public keys verify checkpoints on any machine.
 */
import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign, verify } from 'node:crypto'
import { UsageError } from '../../../platform/errors.ts'
import type { MasterKey } from '../secrets/master-keys.ts'

export interface SigningKey {
  id: string
  privateKey: KeyObject
}

/** By key id. */
export type VerifyingKeys = ReadonlyMap<string, KeyObject>

const purpose = 'postern audit checkpoint'

// RFC 8410 §7: the fixed prefix of an Ed25519 private key in PKCS #8. The 32 bytes of the seed follow.
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

export const signingKeyOf = ({ id, key }: MasterKey): SigningKey =>
  signingKeyFrom({ id, seed: Buffer.from(hkdfSync('sha256', key, '', purpose, 32)) })

/** The signer's own secret. Only the signing key is derived from it. */
export interface SigningSeed {
  id: string
  seed: Buffer
}

export function signingKeyFrom({ id, seed }: SigningSeed): SigningKey {
  const privateKey = createPrivateKey({
    key: Buffer.concat([pkcs8Prefix, seed]),
    format: 'der',
    type: 'pkcs8',
  })
  return { id, privateKey }
}

export const publicKeyOf = ({ id, privateKey }: SigningKey): VerifyingKeys =>
  new Map([[id, createPublicKey(privateKey)]])

/**
 * The keys that this installation trusts. With a signer, only the configured public keys are trusted: every Postern process
 * can derive keys from the master keys, so a compromised process could sign with a derived key.
 */
export const trustedKeysOf = ({
  auditPublicKeys,
  masterKeys,
}: {
  auditPublicKeys: VerifyingKeys
  masterKeys: readonly MasterKey[]
}): VerifyingKeys => (auditPublicKeys.size > 0 ? auditPublicKeys : verifyingKeysOf(masterKeys))

export const verifyingKeysOf = (masterKeys: readonly MasterKey[]): VerifyingKeys =>
  new Map(masterKeys.map((key) => [key.id, createPublicKey(signingKeyOf(key).privateKey)]))

export const signHash = ({ privateKey }: SigningKey, hash: string): string =>
  sign(null, Buffer.from(hash, 'hex'), privateKey).toString('hex')

export const isSigned = (key: KeyObject, hash: string, signature: string): boolean =>
  verify(null, Buffer.from(hash, 'hex'), key, Buffer.from(signature, 'hex'))

/** In the form `id:hex`, which `postern audit key` prints and `--public-key` accepts. */
export const writeKeys = (keys: VerifyingKeys): string[] =>
  [...keys].map(([id, key]) => {
    const { x = '' } = key.export({ format: 'jwk' })
    return `${id}:${Buffer.from(x, 'base64url').toString('hex')}`
  })

export const readKeys = (texts: readonly string[]): VerifyingKeys =>
  new Map(
    texts.map((text) => {
      const [, id, hex] = /^([\w.-]{1,32}):([0-9a-f]{64})$/.exec(text) ?? []
      if (id === undefined || hex === undefined) {
        throw new UsageError(
          `"${text}" is not a public key. Use the output of \`postern audit key\`: id:64 hexadecimal digits.`,
        )
      }
      const x = Buffer.from(hex, 'hex').toString('base64url')
      return [id, createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })]
    }),
  )
