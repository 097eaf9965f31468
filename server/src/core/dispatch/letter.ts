import type { Composers } from '../../mail/composers.ts'
import { type Content, needsUtf8 } from '../../mail/content.ts'
import { hasUtf8Header } from '../../mail/submitted.ts'
import type { VerpKeys } from '../../mail/verp.ts'
import type { Mail } from '../../providers/carrier.ts'
import type { Signer } from '../domains/signing.ts'
import { returnPathOf } from '../feedback/return-path.ts'
import type { Claimed, Letter } from './claim.sql.ts'

/**
 * A stored message as it is handed over to one recipient: composed, or completed if it was submitted, and signed, under a return path that says which
 * mail, which recipient and which attempt comes back.
 */
export async function mailOf(
  claimed: Claimed,
  { created_at, format, content }: Letter & { content: Buffer },
  { name, dkim }: Signer,
  { composers, returnPathKeys }: { composers: Composers; returnPathKeys: VerpKeys },
): Promise<Mail> {
  const { shard, message_id: messageId, recipient_no: recipientNo, attempt, recipient } = claimed
  const returnPath = returnPathOf(returnPathKeys, { shard, messageId, recipientNo, attempt }, name)
  const said = format === 'mime' ? { mime: content } : (JSON.parse(content.toString()) as Content)
  const raw = await composers.make({
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
