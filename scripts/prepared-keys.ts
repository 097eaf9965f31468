import { generateKeyPair } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'

/**
 * RSA key pairs for tests, generated once. Every domain that a test creates has a DKIM key; generating one takes 110 ms
 * of CPU time, and the suite creates about 2,000. Using prepared pairs only saves time: the pairs are real, and a
 * process uses each at most once (prepared-keys-hook.ts).
 */
export interface RsaPair {
  /** SPKI, DER, in base64. */
  publicKey: string
  /** PKCS #8, PEM. */
  privateKey: string
}

/** Enough for most files; a file that needs more generates the rest. */
const count = 40
const file = path.resolve(import.meta.dirname, '../node_modules/.cache/rsa-pairs.json')
const generate = promisify(generateKeyPair)

/** The Node.js option and environment variables for every process of a test run. */
export async function prepareKeys(): Promise<{ option: string; variables: Record<string, string> }> {
  if (!existsSync(file)) await makeFile()
  return {
    option: `--import=${import.meta.resolve('./prepared-keys-hook.ts')}`,
    variables: { POSTERN_TEST_RSA_PAIRS: file },
  }
}

async function makeFile(): Promise<void> {
  const pairs = await Promise.all(
    Array.from({ length: count }, async (): Promise<RsaPair> => {
      const { publicKey, privateKey } = await generate('rsa', {
        modulusLength: 2048,
        publicKeyEncoding: { type: 'spki', format: 'der' },
        privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      })
      return { publicKey: publicKey.toString('base64'), privateKey }
    }),
  )
  await mkdir(path.dirname(file), { recursive: true })
  // Two runs can start at the same time.
  await writeFile(`${file}.${process.pid}`, JSON.stringify(pairs), { mode: 0o600 })
  await rename(`${file}.${process.pid}`, file)
}
