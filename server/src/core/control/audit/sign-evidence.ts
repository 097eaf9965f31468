import type { MasterKeys } from '../secrets/master-keys.ts'
import type { SignerConnection } from './checkpoints.ts'
import { type EvidenceStatement, isEvidenceSigned, signEvidence } from './evidence-signature.ts'
import { signingKeyOf } from './keys.ts'
import { askSigner } from './signer-messages.ts'

export interface EvidenceSignature {
  key_id: string
  signature: string
}

/** Signs with the key of checkpoints: the signer's, or without a signer that of the first master key. */
export async function signatureOf(
  statement: Omit<EvidenceStatement, 'key_id'>,
  { signer, masterKeys: [first] }: { signer: SignerConnection | undefined; masterKeys: MasterKeys },
): Promise<EvidenceSignature> {
  if (signer) return signedBy(signer, statement)
  const key = signingKeyOf(first)
  return { key_id: key.id, signature: signEvidence(key, { ...statement, key_id: key.id }) }
}

async function signedBy(
  { socket, keys }: SignerConnection,
  statement: Omit<EvidenceStatement, 'key_id'>,
): Promise<EvidenceSignature> {
  const what = `evidence ${statement.evidence_id}`
  const response = await askSigner(socket, { type: 'sign_evidence', ...statement })
  if (response.type !== 'signed_evidence') {
    const reason = response.type === 'refused' ? response.reason : 'The response has no signature.'
    throw new Error(`the signer at ${socket} did not sign ${what}: ${reason}`)
  }
  const { key_id, signature } = response
  const key = keys.get(key_id)
  if (!key || !isEvidenceSigned(key, { ...statement, key_id }, signature)) {
    throw new Error(
      `the signature of ${what} by the signer at ${socket} with its key "${key_id}" does not verify with POSTERN_AUDIT_PUBLIC_KEYS`,
    )
  }
  return { key_id, signature }
}
