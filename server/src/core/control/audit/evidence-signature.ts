/**
 * Signatures of evidence files, made with the key of checkpoints. A checkpoint's signature is over exactly 32 bytes (its
 * hash); this one is over a longer text with its own prefix. Neither can be taken for the other.
 */
import { type KeyObject, sign, verify } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { SigningKey } from './keys.ts'

export interface EvidenceStatement {
  evidence_id: number
  project_id: number
  /** When it was signed, in the form of chain.ts. */
  at: string
  /** The number of lines before the signature. */
  lines: number
  /** The hash of the last of them, which covers all lines before it. */
  hash: string
  key_id: string
}

const prefix = 'postern evidence, version 1\n'

const signedBytes = (statement: EvidenceStatement): Buffer =>
  Buffer.from(`${prefix}${canonicalize(statement)}`)

export const signEvidence = ({ privateKey }: SigningKey, statement: EvidenceStatement): string =>
  sign(null, signedBytes(statement), privateKey).toString('hex')

export const isEvidenceSigned = (key: KeyObject, statement: EvidenceStatement, signature: string): boolean =>
  verify(null, signedBytes(statement), key, Buffer.from(signature, 'hex'))
