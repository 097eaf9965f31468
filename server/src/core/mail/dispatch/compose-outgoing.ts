import type { ComposerThreads } from '../../../formats/composer-threads.ts'
import { type Content, needsUtf8 } from '../../../formats/content.ts'
import { hasUtf8Header } from '../../../formats/submitted.ts'
import type { VerpKeys } from '../../../formats/verp.ts'
import type { Mail } from '../../../providers/transport.ts'
import type { DkimSigner } from '../../control/domains/dkim-signer.ts'
import { returnPathOf } from '../feedback/match-bounce.ts'
import { type SrsKeys, srsPathOf } from '../feedback/srs-path.ts'
import type { Forwarded } from '../messages/draft.ts'
import type { Claimed, QueuedMessage } from './claims.sql.ts'

export interface ComposeDeps {
  composers: ComposerThreads
  returnPathKeys: VerpKeys
  srsKeys: SrsKeys
}

/**
 * Composes and DKIM-signs a stored message for one recipient. A message submitted over SMTP is already
 * composed; only missing header fields are added. The return path (VERP) identifies the message, the
 * recipient and the attempt.
 */
export async function composeFor(
  claimed: Claimed,
  message: QueuedMessage & { content: Buffer },
  signer: DkimSigner,
  deps: ComposeDeps,
): Promise<Mail> {
  const { created_at, format, content } = message
  const { name, dkim } = signer
  const { shard, message_id: messageId, recipient_no: recipientNo, attempt, recipient } = claimed
  const returnPath = returnPathOf(deps.returnPathKeys, { shard, messageId, recipientNo, attempt }, name)
  if (message.forwarded)
    return composeForwarded(claimed, content, message.forwarded, { name, returnPath, ...deps })
  const stored = format === 'mime' ? { mime: content } : (JSON.parse(content.toString()) as Content)
  const raw = await deps.composers.make({
    content: stored,
    composition: {
      messageId,
      domain: name,
      date: created_at,
      ref: returnPath.slice(0, returnPath.indexOf('@')),
    },
    key: dkim && { domain: name, ...dkim },
  })
  return {
    envelope: { from: returnPath, to: recipient },
    dsn: { envid: `${messageId}.${recipientNo}.${attempt}` },
    raw,
    needsUtf8: 'mime' in stored ? hasUtf8Header(content) : needsUtf8(stored),
  }
}

/**
 * Forwarded mail is sent unchanged. Its envelope sender is rewritten (SRS), or replaced by the VERP return
 * path if the SRS address would be too long. A null sender is not changed. Reports identify the message by
 * the envelope id, which is signed in the same way as a return path. Success reports are not requested,
 * because only the original sender can request them.
 */
function composeForwarded(
  { recipient, claimed_at }: Claimed,
  raw: Buffer,
  { envelope_from, smtputf8 }: Forwarded,
  { name, returnPath, srsKeys }: { name: string; returnPath: string; srsKeys: SrsKeys },
): Mail {
  const from = envelope_from === '' ? '' : srsPathOf(srsKeys, envelope_from, name, claimed_at)
  return {
    envelope: { from: from ?? returnPath, to: recipient },
    dsn: { envid: returnPath.slice(0, returnPath.indexOf('@')), notifySuccess: false },
    raw,
    needsUtf8: smtputf8 && hasUtf8Header(raw),
  }
}
