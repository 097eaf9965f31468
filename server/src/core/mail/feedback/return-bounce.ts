import { readInternationalAddress } from '../../../formats/address.ts'
import { receivedField } from '../../../formats/trace.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import { acceptWithin } from '../messages/acceptance.ts'
import { findForwarded, type RecipientKey } from './feedback.sql.ts'

/**
 * Returns the bounce of a forwarded mail to its original sender. The report is sent with the null sender, so that it causes
 * no further bounce. It is not returned to a sender that was not authenticated: the report would go to the victim of a
 * forgery. When it cannot be sent (the project is locked, its quota is used up), only the project learns of it, by the
 * event. Returns false in these cases, and for mail that was not forwarded.
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
