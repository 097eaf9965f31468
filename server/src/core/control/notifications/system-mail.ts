/** Composes the installation's own mail to people and hands it over to the operator's MTAs. */
import { composeMime } from '../../../formats/compose.ts'
import type { Handover, Transport } from '../../../providers/transport.ts'
import { type Operator, renderSystemMail, type SystemMailContent } from './render.ts'

export interface AddressedMail extends SystemMailContent {
  to: string
}

export interface SystemMailSender {
  /** No MTA can be reached at present. */
  readonly isUnavailable: boolean
  /** Equal arguments make equal messages, so that a mail that is sent again has the same Message-ID and content. Never rejects
   * because of the MTA. */
  send(id: string, createdAt: Date, mail: AddressedMail): Promise<Handover>
}

export interface SystemMailOptions {
  transport: Transport
  from: string
  operator: Operator
  publicUrl: URL
  /** The envelope sender for a mail. Bounces and other replies of mail servers go there. */
  returnPathOf(id: string): string
}

export function createSystemMail({
  transport,
  from,
  operator,
  publicUrl,
  returnPathOf,
}: SystemMailOptions): SystemMailSender {
  return {
    get isUnavailable() {
      return transport.isUnavailable
    },
    async send(id, createdAt, { to, ...content }) {
      const { subject, text, html } = renderSystemMail(content, operator, publicUrl)
      const raw = await composeMime(
        {
          from: { name: operator.name, address: from },
          to: [{ name: null, address: to }],
          cc: [],
          reply_to: operator.supportEmail === null ? [] : [{ name: null, address: operator.supportEmail }],
          subject,
          text,
          html,
          // RFC 3834 §5.
          headers: [{ name: 'Auto-Submitted', value: 'auto-generated' }],
          attachments: [],
        },
        { messageId: id, domain: from.slice(from.lastIndexOf('@') + 1), date: createdAt },
      )
      return transport.send({
        envelope: { from: returnPathOf(id), to },
        dsn: { envid: id, notifySuccess: false },
        raw,
        needsUtf8: false,
      })
    },
  }
}
