import crypto from 'node:crypto'
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { promisify } from 'node:util'
import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'
import type { RsaPair } from './prepared-keys.ts'

/** Loaded into every process of a test run; see prepared-keys.ts. */
const { generateKeyPair, generateKeyPairSync } = crypto
const generate = promisify(generateKeyPair)
const file = process.env['POSTERN_TEST_RSA_PAIRS']
let pairs: RsaPair[] | undefined
/** The number of pairs used so far, shared by all threads of the process. */
const counter = 'postern prepared keys'
if (isMainThread) setEnvironmentData(counter, new SharedArrayBuffer(4))
const taken = new Int32Array(getEnvironmentData(counter) as unknown as SharedArrayBuffer)

interface Encoding {
  type?: string
  format?: string
}

interface RsaOptions {
  modulusLength: number
  publicKeyEncoding?: Encoding
  privateKeyEncoding?: Encoding
}

/** Whether the requested options match the prepared pairs. */
function isPrepared(type: string, options: RsaOptions | undefined): boolean {
  if (!options) return false
  const { modulusLength, publicKeyEncoding, privateKeyEncoding } = options
  return (
    [type, modulusLength, publicKeyEncoding?.type, publicKeyEncoding?.format].join() ===
      'rsa,2048,spki,der' && [privateKeyEncoding?.type, privateKeyEncoding?.format].join() === 'pkcs8,pem'
  )
}

function prepared(
  type: string,
  options: RsaOptions | undefined,
): { publicKey: Buffer; privateKey: string } | undefined {
  if (!file || !isPrepared(type, options)) return undefined
  pairs ??= JSON.parse(readFileSync(file, 'utf8')) as RsaPair[]
  const pair = pairs[Atomics.add(taken, 0, 1)]
  return pair && { publicKey: Buffer.from(pair.publicKey, 'base64'), privateKey: pair.privateKey }
}

const take = async (type: 'rsa', options: RsaOptions): Promise<unknown> =>
  prepared(type, options) ?? generate(type, options as never)

const patched = (...args: Parameters<typeof generateKeyPair>): void => generateKeyPair(...args)
crypto.generateKeyPair = Object.assign(patched, { [promisify.custom]: take }) as never
crypto.generateKeyPairSync = ((type: 'rsa', options: never) =>
  prepared(type, options) ?? generateKeyPairSync(type, options)) as never
syncBuiltinESMExports()
