import { readInternationalAddress } from '../../../formats/address.ts'
import { receivedField } from '../../../formats/trace.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { ByteLimits } from '../../control/caps/caps.ts'
import { acceptWithin } from '../messages/acceptance.ts'
import { type ForwardedRow, findForwarded, type RecipientKey } from './feedback.sql.ts'

/** A report that arrived by mail. */
export interface ReturnableReport {
  raw: Buffer
  hasNul: boolean
  from: string
  subject: string
}

export interface ReturnOptions {
  /** Host name of the return-path MX. */
  name: string
  byteLimits: ByteLimits
}

/**
 * Returns the bounces of forwarded messages to the original senders. A report is sent with the null sender, so it
 * causes no further bounce. It is not returned to an unauthenticated sender, whose address may have been forged. If
 * it cannot be sent (the project is locked or its quota is used up), the project learns of the bounce only from the
 * event.
 */
export async function returnBounces(
  tx: Tx,
  bounces: readonly (RecipientKey & { report?: ReturnableReport })[],
  { name, byteLimits }: ReturnOptions,
): Promise<void> {
  const returnable = bounces.filter(({ report }) => report && !report.hasNul)
  if (returnable.length === 0) return
  const byProject = new Map<number, ReturnType<typeof returned>[]>()
  for (const [index, forwarded] of await findForwarded(tx, returnable)) {
    const { messageId, report } = returnable[index] ?? {}
    if (!messageId || !report || !canReturnTo(forwarded)) continue
    const mails = byProject.get(forwarded.project_id) ?? []
    mails.push(returned(messageId, report, forwarded, name))
    byProject.set(forwarded.project_id, mails)
  }
  // In the order in which other transactions lock the projects' usage.
  for (const [projectId, mails] of [...byProject].sort(([one], [other]) => one - other)) {
    await acceptWithin(tx, projectId, mails, byteLimits)
  }
}

const canReturnTo = ({ is_sender_confirmed, envelope_from }: ForwardedRow): boolean =>
  is_sender_confirmed && envelope_from !== '' && !('fault' in readInternationalAddress(envelope_from))

function returned(
  messageId: string,
  { raw, from, subject }: ReturnableReport,
  forwarded: ForwardedRow,
  name: string,
) {
  const hop = receivedField({
    ...{ helo: 'feedback', ip: '127.0.0.1', by: name, isTls: false, isUtf8: false },
    ...{ id: messageId, at: forwarded.now },
  })
  const content = Buffer.concat([Buffer.from(hop), raw])
  return {
    senderDomain: forwarded.name,
    draft: {
      ...{ from, subject, format: 'mime' as const, content, sizeBytes: content.length },
      ...{ tags: [], metadata: {}, sendAt: null },
      recipients: [{ kind: 'to' as const, address: forwarded.envelope_from }],
      forwarded: { envelope_from: '', smtputf8: false, is_sender_confirmed: false },
    },
  }
}
