import { createTransport } from 'nodemailer'
import type { Delivery } from './sink.ts'

/**
 * What a mailbox provider sends when somebody presses "this is spam": a report as RFC 5965 describes it, about a mail
 * as it was received, to the address that the sender has given for such reports.
 */
export async function complainAbout(
  { from, to: [recipient = ''], raw }: Delivery,
  { port, to }: { port: number; to: string },
): Promise<void> {
  const boundary = 'of-the-report'
  const [head = ''] = raw.toString('latin1').split('\r\n\r\n')
  const report = [
    'From: Complaints <fbl@receiver.example.net>',
    `To: ${to}`,
    'Subject: FW: Your order',
    'Date: Sun, 15 Nov 2026 09:00:00 +0000',
    `Message-ID: <${crypto.randomUUID()}@receiver.example.net>`,
    'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type=feedback-report; boundary="${boundary}"`,
    '',
    `--${boundary}`,
    'Content-Type: text/plain; charset=us-ascii',
    '',
    'This is an email abuse report for a message received from 127.0.0.1.',
    '',
    `--${boundary}`,
    'Content-Type: message/feedback-report',
    '',
    'Feedback-Type: abuse',
    'User-Agent: Receiver/1.0',
    'Version: 1',
    `Original-Mail-From: <${from}>`,
    `Original-Rcpt-To: <${recipient}>`,
    'Source-IP: 127.0.0.1',
    '',
    `--${boundary}`,
    'Content-Type: text/rfc822-headers',
    '',
    head,
    '',
    `--${boundary}--`,
    '',
  ]
  const transport = createTransport({
    host: '127.0.0.1',
    port,
    name: 'receiver.example.net',
    ignoreTLS: true,
  })
  await transport.sendMail({
    envelope: { from: 'fbl@receiver.example.net', to },
    raw: Buffer.from(report.join('\r\n'), 'latin1'),
  })
}
