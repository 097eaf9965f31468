/** The installation's own mail to people. It uses the operator's MTAs, like customers' mail, but bypasses the queue. */
import { randomUUID } from 'node:crypto'
import { composeMime } from '../../../formats/compose.ts'
import type { Transport } from '../../../providers/transport.ts'

export interface SystemMail {
  send(mail: { to: string; subject: string; text: string }): Promise<void>
}

/** The MTA permanently rejected the mail. */
export class MailRefused extends Error {
  override readonly name = 'MailRefused'
}

export function createSystemMail(transport: Transport, from: string): SystemMail {
  return {
    async send({ to, subject, text }) {
      const id = randomUUID()
      const raw = await composeMime(
        {
          from: { name: null, address: from },
          to: [{ name: null, address: to }],
          cc: [],
          reply_to: [],
          subject,
          text,
          html: null,
          headers: [{ name: 'Auto-Submitted', value: 'auto-generated' }],
          attachments: [],
        },
        { messageId: id, domain: from.slice(from.lastIndexOf('@') + 1), date: new Date() },
      )
      const handover = await transport.send({
        envelope: { from, to },
        dsn: { envid: id },
        raw,
        needsUtf8: false,
      })
      if (handover.kind === 'sent') return
      if (handover.kind === 'refused' && handover.isPermanent) throw new MailRefused(handover.reply)
      throw new Error(handover.kind === 'refused' ? handover.reply : handover.detail)
    },
  }
}
