/**
 * The secret of an API key: `pk_live_` or `pk_test_`, 43 random characters, a checksum of 6 characters.
 *
 * The prefix lets people and secret scanners recognize the secret. The checksum detects a mistyped or invented key without
 * a query. The checksum is not a security measure: anyone can compute it.
 */
import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

export type ApiKeyMode = 'live' | 'test'

// In ASCII order. 43 characters from an alphabet of 62 provide 256.03 bits of entropy.
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const randomLength = 43
const checksumLength = 6
const prefixLength = 'pk_live_'.length + 4

const format = /^pk_(?:live|test)_[0-9A-Za-z]{49}$/

export function newSecret(mode: ApiKeyMode): string {
  const random = Array.from({ length: randomLength }, () => alphabet.charAt(randomInt(alphabet.length)))
  const unchecked = `pk_${mode}_${random.join('')}`
  return unchecked + checksumOf(unchecked)
}

/** Whether the format and checksum are valid. */
export const isWellFormed = (secret: string): boolean =>
  format.test(secret) && secret.slice(-checksumLength) === checksumOf(secret.slice(0, -checksumLength))

/** CRC-32 in base 62, the most significant digit first. 62^6 is more than 2^32. */
function checksumOf(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let n = 0; n < checksumLength; n++) {
    digits = alphabet.charAt(rest % alphabet.length) + digits
    rest = Math.floor(rest / alphabet.length)
  }
  return digits
}

/** The stored columns. 256 random bits need no salt and no slow hash, because they cannot be guessed. */
export const storedForm = (secret: string) => ({
  prefix: secret.slice(0, prefixLength),
  secret_hash: hashOf(secret),
})

export const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest()
