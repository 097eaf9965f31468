import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** A WebAuthn authenticator with one passkey (ES256, no attestation). */
export interface PasskeyAuthenticator {
  /** What `navigator.credentials.create` returns. */
  create(options: CredentialOptions, changes?: Changes): RegisteredPasskey
  /** What `navigator.credentials.get` returns. */
  get(options: CredentialOptions, changes?: Changes): AssertedPasskey
}

interface CredentialOptions {
  challenge: string
}

interface Changes {
  /** Whether the user entered a PIN or showed a finger. */
  verifiesUser?: boolean
  origin?: string
  rpId?: string
}

interface Credential {
  id: string
  rawId: string
  type: 'public-key'
  clientExtensionResults: object
}
export type RegisteredPasskey = Credential & {
  response: { clientDataJSON: string; attestationObject: string; transports: string[] }
}
export type AssertedPasskey = Credential & {
  response: { clientDataJSON: string; authenticatorData: string; signature: string }
}

const sha256 = (bytes: Buffer | string): Buffer => createHash('sha256').update(bytes).digest()
const base64url = (bytes: Buffer): string => bytes.toString('base64url')

export function createPasskeyAuthenticator(publicUrl: string): PasskeyAuthenticator {
  const { origin: ownOrigin, hostname } = new URL(publicUrl)
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const id = randomBytes(32)
  let counter = 0

  const credential = (): Credential => ({
    ...{ id: base64url(id), rawId: base64url(id), type: 'public-key' },
    clientExtensionResults: {},
  })
  const clientData = (type: string, { challenge }: CredentialOptions, { origin = ownOrigin }: Changes) =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }))
  // WebAuthn §6.1: bit 0 is user presence, bit 2 user verification, bit 6 an attached public key.
  const authenticatorData = (attached: Buffer, { verifiesUser = true, rpId = hostname }: Changes): Buffer => {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(++counter)
    const flags = 0x01 | (verifiesUser ? 0x04 : 0) | (attached.length > 0 ? 0x40 : 0)
    return Buffer.concat([sha256(rpId), Buffer.of(flags), count, attached])
  }
  // RFC 9053 §7.1.1: an EC2 key for ES256.
  const coseKey = Buffer.concat([
    Buffer.from('a5010203262001215820', 'hex'),
    Buffer.from(x, 'base64url'),
    Buffer.from('225820', 'hex'),
    Buffer.from(y, 'base64url'),
  ])

  return {
    create(options, changes = {}) {
      const attached = Buffer.concat([Buffer.alloc(16), Buffer.of(0, id.length), id, coseKey])
      const data = authenticatorData(attached, changes)
      // CBOR: {"fmt": "none", "attStmt": {}, "authData": data}
      const attestation = Buffer.concat([
        Buffer.from(`a363666d74646e6f6e656761747453746d74a068617574684461746159`, 'hex'),
        Buffer.of(data.length >> 8, data.length & 0xff),
        data,
      ])
      return {
        ...credential(),
        response: {
          clientDataJSON: base64url(clientData('webauthn.create', options, changes)),
          attestationObject: base64url(attestation),
          transports: ['internal'],
        },
      }
    },
    get(options, changes = {}) {
      const client = clientData('webauthn.get', options, changes)
      const data = authenticatorData(Buffer.alloc(0), changes)
      const signature = sign('sha256', Buffer.concat([data, sha256(client)]), privateKey)
      return {
        ...credential(),
        response: {
          clientDataJSON: base64url(client),
          authenticatorData: base64url(data),
          signature: base64url(signature),
        },
      }
    },
  }
}
