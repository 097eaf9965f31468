import { readInternationalAddress } from '../../../formats/address.ts'
import { receivedField } from '../../../formats/trace.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import { acceptWithin } from '../messages/acceptance.ts'
import { findForwarded, type RecipientKey } from './feedback.sql.ts'

/**
 * A mail that we sent on could not be delivered, and whoever sent it is told: the report is sent on in turn, with the
 * null sender, so that nobody is told of its own failure. Not where it is not known that they sent it: whoever is named by
 * a forger would be sent the report. What may not be sent now (the project is locked, its quota is
 * used up) is told to nobody but the project, by the event. False then, and where it was no such mail.
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
