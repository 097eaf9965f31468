import crypto from 'node:crypto'
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { promisify } from 'node:util'
import type { RsaPair } from './prepared-keys.ts'

/** Loaded into every process of a test run: see prepared-keys.ts. */
const { generateKeyPair } = crypto
const generate = promisify(generateKeyPair)
const file = process.env['POSTERN_TEST_RSA_PAIRS']
let unused: RsaPair[] | undefined

interface Encoding {
  type?: string
  format?: string
}

interface RsaOptions {
  modulusLength: number
  publicKeyEncoding?: Encoding
  privateKeyEncoding?: Encoding
}

/** Exactly the kind that was prepared. */
function isPrepared(type: string, options: RsaOptions): boolean {
  const { modulusLength, publicKeyEncoding, privateKeyEncoding } = options
  return (
    [type, modulusLength, publicKeyEncoding?.type, publicKeyEncoding?.format].join() ===
      'rsa,2048,spki,der' && [privateKeyEncoding?.type, privateKeyEncoding?.format].join() === 'pkcs8,pem'
  )
}

async function take(type: 'rsa', options: RsaOptions): Promise<unknown> {
  if (file && isPrepared(type, options)) {
    unused ??= JSON.parse(readFileSync(file, 'utf8')) as RsaPair[]
    const pair = unused.pop()
    if (pair) return { publicKey: Buffer.from(pair.publicKey, 'base64'), privateKey: pair.privateKey }
  }
  return generate(type, options as never)
}

const patched = (...args: Parameters<typeof generateKeyPair>): void => generateKeyPair(...args)
crypto.generateKeyPair = Object.assign(patched, { [promisify.custom]: take }) as never
syncBuiltinESMExports()
