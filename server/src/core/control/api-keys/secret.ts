import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * The secret of an API key: `pk_live_` or `pk_test_`, 43 random characters, 6 characters of checksum.
 *
 * The beginning tells people and secret scanners what it is. The checksum tells a mistyped or made-up key from
 * one that was given out without a look into the database; it protects nothing, anybody can compute it.
 */
export type ApiKeyMode = 'live' | 'test'

// In the order of ASCII. 43 of 62 are 256.03 bits.
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const randomLength = 43
const checksumLength = 6
const readableLength = 'pk_live_'.length + 4

const form = /^pk_(?:live|test)_[0-9A-Za-z]{49}$/

export function newSecret(mode: ApiKeyMode): string {
  const random = Array.from({ length: randomLength }, () => alphabet.charAt(randomInt(alphabet.length)))
  const unchecked = `pk_${mode}_${random.join('')}`
  return unchecked + checksumOf(unchecked)
}

/** Whether this can be a secret that was given out. */
export const isWellFormed = (secret: string): boolean =>
  form.test(secret) && secret.slice(-checksumLength) === checksumOf(secret.slice(0, -checksumLength))

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

/** What is kept. 256 random bits need no salt and no slow hash: there is nothing to guess. */
export const storedForm = (secret: string) => ({
  prefix: secret.slice(0, readableLength),
  secret_hash: hashOf(secret),
})

export const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest()
