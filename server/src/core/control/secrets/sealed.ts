import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/**
 * One sealed text: AES-256-GCM with a random IV, laid out as
 *
 *   1 byte version ‖ 12 bytes IV ‖ 16 bytes tag ‖ ciphertext
 *
 * The place it is kept at is its additional data: bytes moved to another row, column or project do not open.
 * What this does not see is an older seal of the same place put back.
 */
const version = 1
const cipher = 'aes-256-gcm'
const ivBytes = 12
const tagBytes = 16
const headBytes = 1 + ivBytes + tagBytes

export const keyBytes = 32

// NIST SP 800-38D §8.3 allows 2^32 random IVs under one key: a project's key will not see that many secrets.
export function sealBytes(key: Buffer, place: string, plaintext: Buffer): Buffer {
  const iv = randomBytes(ivBytes)
  const encryption = createCipheriv(cipher, key, iv, { authTagLength: tagBytes }).setAAD(Buffer.from(place))
  const ciphertext = Buffer.concat([encryption.update(plaintext), encryption.final()])
  return Buffer.concat([Buffer.of(version), iv, encryption.getAuthTag(), ciphertext])
}

/** Throws an error that names the place and nothing of what is sealed. */
export function openBytes(key: Buffer, place: string, sealed: Buffer): Buffer {
  if (sealed.length < headBytes) throw new Error(`${place} is cut short`)
  if (sealed[0] !== version) throw new Error(`${place} is sealed in a form that this version does not know`)
  const iv = sealed.subarray(1, 1 + ivBytes)
  const decryption = createDecipheriv(cipher, key, iv, { authTagLength: tagBytes })
    .setAAD(Buffer.from(place))
    .setAuthTag(sealed.subarray(1 + ivBytes, headBytes))
  const plaintext = decryption.update(sealed.subarray(headBytes))
  try {
    return Buffer.concat([plaintext, decryption.final()])
  } catch {
    throw new Error(`${place} was altered, or sealed for another place or under another key`)
  }
}
