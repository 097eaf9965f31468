import { readInternationalAddress } from '../../../formats/address.ts'
import { receivedField } from '../../../formats/trace.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import { acceptWithin } from '../messages/acceptance.ts'
import { findForwarded, type RecipientKey } from './feedback.sql.ts'

/**
 * Returns a forwarded message's bounce to the original sender. The report is sent with the null sender, so it
 * causes no further bounce. The report is not returned to an unauthenticated sender, whose address may have
 * been forged. If the report cannot be sent (the project is locked or its quota is used up), the project
 * learns of the bounce only from the event. Returns false in these cases and for mail that was not forwarded.
 */
export async function returnBounce(
  tx: Tx,
  key: RecipientKey,
  { raw, hasNul, from, subject }: { raw: Buffer; hasNul: boolean; from: string; subject: string },
  { name, byteLimits }: { name: string; byteLimits: ByteLimits },
): Promise<boolean> {
  const mail = await findForwarded(tx, key)
  if (!mail?.is_sender_confirmed || mail.envelope_from === '' || hasNul) return false
  if ('fault' in readInternationalAddress(mail.envelope_from)) return false
  const hop = receivedField({
    ...{ helo: 'feedback', ip: '127.0.0.1', by: name, isTls: false, isUtf8: false },
    ...{ id: key.messageId, at: mail.now },
  })
  const content = Buffer.concat([Buffer.from(hop), raw])
  const report = {
    senderDomain: mail.name,
    draft: {
      ...{ from, subject, format: 'mime' as const, content, sizeBytes: content.length },
      ...{ tags: [], metadata: {}, sendAt: null },
      recipients: [{ kind: 'to' as const, address: mail.envelope_from }],
      forwarded: { envelope_from: '', smtputf8: false, is_sender_confirmed: false },
    },
  }
  const [outcome] = await acceptWithin(tx, mail.project_id, [report], byteLimits)
  return outcome !== undefined && 'accepted' in outcome
}
