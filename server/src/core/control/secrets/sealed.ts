/**
 * Encryption of one secret: AES-256-GCM with a random IV, laid out as
 *
 *   1 byte version ‖ 12 bytes IV ‖ 16 bytes tag ‖ ciphertext
 *
 * The location of the secret is the additional authenticated data: bytes moved to another row, column or project do not
 * decrypt. Restoring an older ciphertext at the same location is not detected.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const version = 1
const cipher = 'aes-256-gcm'
const ivBytes = 12
const tagBytes = 16
const headBytes = 1 + ivBytes + tagBytes

export const keyBytes = 32

// NIST SP 800-38D §8.3 allows 2^32 random IVs per key. A project never encrypts that many secrets.
export function sealBytes(key: Buffer, location: string, plaintext: Buffer): Buffer {
  const iv = randomBytes(ivBytes)
  const encryption = createCipheriv(cipher, key, iv, { authTagLength: tagBytes }).setAAD(
    Buffer.from(location),
  )
  const ciphertext = Buffer.concat([encryption.update(plaintext), encryption.final()])
  return Buffer.concat([Buffer.of(version), iv, encryption.getAuthTag(), ciphertext])
}

/** The error names the location and contains no part of the secret. */
export function openBytes(key: Buffer, location: string, sealed: Buffer): Buffer {
  if (sealed.length < headBytes) throw new Error(`${location} is truncated`)
  if (sealed[0] !== version)
    throw new Error(`${location} is encrypted in a format that this version does not support`)
  const iv = sealed.subarray(1, 1 + ivBytes)
  const decryption = createDecipheriv(cipher, key, iv, { authTagLength: tagBytes })
    .setAAD(Buffer.from(location))
    .setAuthTag(sealed.subarray(1 + ivBytes, headBytes))
  const plaintext = decryption.update(sealed.subarray(headBytes))
  try {
    return Buffer.concat([plaintext, decryption.final()])
  } catch {
    throw new Error(`${location} was altered, or encrypted for another location or with another key`)
  }
}
