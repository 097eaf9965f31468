import type { ComposerThreads } from '../../../formats/composer-threads.ts'
import { type Content, needsUtf8 } from '../../../formats/content.ts'
import { hasUtf8Header } from '../../../formats/submitted.ts'
import type { VerpKeys } from '../../../formats/verp.ts'
import type { Mail } from '../../../providers/transport.ts'
import type { DkimSigner } from '../../control/domains/dkim-signer.ts'
import { returnPathOf } from '../feedback/return-path.ts'
import { type SrsKeys, srsPathOf } from '../feedback/srs-path.ts'
import type { Forwarded } from '../messages/draft.ts'
import type { Claimed, Letter } from './claims.sql.ts'

export interface ComposeDeps {
  composers: ComposerThreads
  returnPathKeys: VerpKeys
  srsKeys: SrsKeys
}

/**
 * A stored message as it is handed over to one recipient: composed, or completed if it was submitted, and signed, under a return path that says which
 * mail, which recipient and which attempt comes back.
 */
export async function composeFor(
  claimed: Claimed,
  letter: Letter & { content: Buffer },
  signer: DkimSigner,
  deps: ComposeDeps,
): Promise<Mail> {
  const { created_at, format, content } = letter
  const { name, dkim } = signer
  const { shard, message_id: messageId, recipient_no: recipientNo, attempt, recipient } = claimed
  const returnPath = returnPathOf(deps.returnPathKeys, { shard, messageId, recipientNo, attempt }, name)
  if (letter.forwarded) return sentOn(claimed, content, letter.forwarded, { name, returnPath, ...deps })
  const said = format === 'mime' ? { mime: content } : (JSON.parse(content.toString()) as Content)
  const raw = await deps.composers.make({
    content: said,
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
    needsUtf8: 'mime' in said ? hasUtf8Header(content) : needsUtf8(said),
  }
}

/**
 * Mail that came in leaves as it came. Its sender is rewritten to an address of ours that says whose it was, or, where
 * that is too long, to one that says which mail it is; the null sender stays. Which mail a report is about it tells by
 * the envelope id, signed as a return path is. Success is not asked for: what happens after us is the sender's to ask.
 */
function sentOn(
  { recipient, claimed_at }: Claimed,
  raw: Buffer,
  { envelope_from, smtputf8 }: Forwarded,
  { name, returnPath, srsKeys }: { name: string; returnPath: string; srsKeys: SrsKeys },
): Mail {
  const from = envelope_from === '' ? '' : srsPathOf(srsKeys, envelope_from, name, claimed_at)
  return {
    envelope: { from: from ?? returnPath, to: recipient },
    dsn: { envid: returnPath.slice(0, returnPath.indexOf('@')), isSuccessTold: false },
    raw,
    needsUtf8: smtputf8 && hasUtf8Header(raw),
  }
}
