/**
 * The protocol of `postern signer`: one JSON object per line. The worker proposes a checkpoint. The signer returns the
 * checkpoint that it has signed with that number: the proposal, or an earlier one if the number is already used. If it
 * rejects the proposal, it returns the reason. `sign_evidence` requests the signature of an evidence file.
 */
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import { askLine } from '../../../platform/net/line-socket.ts'
import type { CheckpointContent } from './chain.ts'

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Time = Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT[\\d:.]{8,15}Z$' })

const Proposal = Type.Object(
  {
    type: Type.Literal('sign'),
    id: Count,
    at: Time,
    heads: Type.Array(
      Type.Object({ chain: Count, seq: Count, hash: Hash }, { additionalProperties: false }),
      { minItems: 1, maxItems: 5000 },
    ),
    prev_hash: Hash,
  },
  { additionalProperties: false },
)

const EvidenceRequest = Type.Object(
  {
    type: Type.Literal('sign_evidence'),
    evidence_id: Count,
    project_id: Count,
    at: Time,
    lines: Count,
    hash: Hash,
  },
  { additionalProperties: false },
)

const Request = Type.Union([
  Proposal,
  EvidenceRequest,
  Type.Object({ type: Type.Literal('status') }, { additionalProperties: false }),
])

export type Proposal = Static<typeof Proposal>
export type EvidenceRequest = Static<typeof EvidenceRequest>
export type SignerRequest = Static<typeof Request>

export type SignedCheckpoint = CheckpointContent & { prev_hash: string; hash: string; signature: string }

export type SignerResponse =
  | { type: 'signed'; checkpoint: SignedCheckpoint }
  | { type: 'signed_evidence'; key_id: string; signature: string }
  | { type: 'status'; public_key: string; last: { id: number; hash: string } | null }
  | { type: 'refused'; reason: string }

/** A line with 5000 heads is about 600 KB long. */
const lineBytes = 2 ** 20

/** The signer's limits for a request. */
export const requestLimits = { lineBytes, timeoutMs: 10_000 }

// The signer reads the new rows before it responds. If that takes longer than the timeout, the signer continues, and the
// next proposal gets the result.
const responseLimits = { lineBytes, timeoutMs: 30_000 }

/** Undefined if the line is not a valid request. */
export function readRequest(line: string): SignerRequest | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return Value.Check(Request, value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The caller must verify the signature of the response. */
export async function askSigner(socket: string, request: SignerRequest): Promise<SignerResponse> {
  try {
    return JSON.parse(await askLine(socket, JSON.stringify(request), responseLimits)) as SignerResponse
  } catch (error) {
    throw new Error(`the signer at ${socket} is unavailable: ${(error as Error).message}`, { cause: error })
  }
}
