/** Reports in the format of MTAs and mailbox providers. */
export interface Reported {
  /** Including the angle brackets. */
  messageId: string
  recipient: string
  returnPath: string
}

/** A delivery status notification (RFC 3464). */
export const deliveryReport = (
  { messageId, recipient, returnPath }: Reported,
  action: 'delivered' | 'failed',
  status: string,
): string =>
  [
    'From: MAILER-DAEMON@sink.test',
    `To: ${returnPath}`,
    'Subject: Delivery report',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="report"',
    '',
    '--report',
    'Content-Type: text/plain',
    '',
    `Your message: ${action}.`,
    '--report',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; sink.test',
    '',
    `Final-Recipient: rfc822; ${recipient}`,
    `Action: ${action}`,
    `Status: ${status}`,
    '--report',
    'Content-Type: text/rfc822-headers',
    '',
    `Message-ID: ${messageId}`,
    '--report--',
    '',
  ].join('\r\n')

/** A complaint (RFC 5965). */
export const complaint = ({ messageId, recipient, returnPath }: Reported): string =>
  [
    'From: fbl@receiver.test',
    'Subject: FW: Your order is on its way',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=feedback-report; boundary="report"',
    '',
    '--report',
    'Content-Type: text/plain',
    '',
    'This is an email abuse report.',
    '--report',
    'Content-Type: message/feedback-report',
    '',
    'Feedback-Type: abuse',
    'User-Agent: Receiver/1.0',
    'Version: 1',
    `Original-Mail-From: <${returnPath}>`,
    `Original-Rcpt-To: <${recipient}>`,
    '--report',
    'Content-Type: text/rfc822-headers',
    '',
    `Message-ID: ${messageId}`,
    '--report--',
    '',
  ].join('\r\n')
