import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign, verify } from 'node:crypto'
import { UsageError } from '../../../platform/errors.ts'
import type { MasterKey } from '../secrets/master-keys.ts'

/**
 * The keys of the checkpoints: Ed25519. With `postern signer`, its own. Without it, one per master key and derived from
 * it, so that there is no further secret to keep. Their public halves are no secret; kept elsewhere, they check a
 * checkpoint anywhere.
 */
export interface SigningKey {
  id: string
  privateKey: KeyObject
}

/** By the name of the key. */
export type VerifyingKeys = ReadonlyMap<string, KeyObject>

const purpose = 'postern audit checkpoint'

// RFC 8410 §7: the fixed beginning of an Ed25519 private key in PKCS #8; the 32 bytes of the seed follow.
const pkcs8Beginning = Buffer.from('302e020100300506032b657004220420', 'hex')

export const signingKeyOf = ({ id, key }: MasterKey): SigningKey =>
  signingKeyFrom({ id, seed: Buffer.from(hkdfSync('sha256', key, '', purpose, 32)) })

/** The signer's own: the seed is the secret, and nothing is derived from it but the key. */
export interface SigningSeed {
  id: string
  seed: Buffer
}

export function signingKeyFrom({ id, seed }: SigningSeed): SigningKey {
  const privateKey = createPrivateKey({
    key: Buffer.concat([pkcs8Beginning, seed]),
    format: 'der',
    type: 'pkcs8',
  })
  return { id, privateKey }
}

export const publicKeyOf = ({ id, privateKey }: SigningKey): VerifyingKeys =>
  new Map([[id, createPublicKey(privateKey)]])

/**
 * Whose signatures count in this installation. With a signer, only the listed keys: what the master keys derive lies in
 * every process of Postern, and a checkpoint signed with it proves nothing against such a process.
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

/** `id:hex`, as `postern audit key` prints them and `--public-key` takes them. */
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
          `"${text}" is no public key as \`postern audit key\` prints them: id:64 hex digits.`,
        )
      }
      const x = Buffer.from(hex, 'hex').toString('base64url')
      return [id, createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })]
    }),
  )
