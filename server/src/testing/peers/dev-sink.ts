import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createTransport } from 'nodemailer'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'

/**
 * The mail server of `npm run dev`. It accepts all mail from Postern, stores it as files, prints a line per message and
 * sends a delivery report as an MTA does, so that the message becomes `delivered`. Addresses that begin with `bounce`
 * are treated as nonexistent. No mail leaves the machine.
 */
export interface DevSink {
  port: number
  close(): Promise<void>
}

export interface DevSinkOptions {
  /** The folder for stored messages. */
  folder: string
  /** The port for reports: POSTERN_BOUNCE_PORT. */
  bouncePort: number
  say(line: string): void
}

export async function startDevSink({ folder, bouncePort, say }: DevSinkOptions): Promise<DevSink> {
  await mkdir(folder, { recursive: true })
  const reports = createTransport({
    host: '127.0.0.1',
    port: bouncePort,
    ignoreTLS: true,
    pool: true,
    maxConnections: 2,
    maxMessages: Number.POSITIVE_INFINITY,
  })
  let count = 0

  async function store(raw: Buffer, from: string, to: string): Promise<void> {
    const { subject } = await PostalMime.parse(raw)
    const stamp = new Date().toISOString().replace(/[:.]/g, '-')
    const file = path.join(folder, `${stamp}-${++count}.eml`)
    await writeFile(file, raw)
    const exists = !to.startsWith('bounce')
    say(
      `  mail for ${to}: "${subject ?? ''}" (${raw.length} bytes, ${path.relative('', file)})${exists ? '' : ', bounced'}`,
    )
    // The service's own messages do not request reports.
    if (!from.startsWith('bounce-')) return
    await reports
      .sendMail({ envelope: { from: '', to: [from] }, raw: reportOf(from, to, exists) })
      .catch(({ message }: Error) => say(`  could not send the report for ${to}: ${message}`))
  }

  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    hideDSN: false,
    onData(stream, { envelope }, done) {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        const from = envelope.mailFrom ? envelope.mailFrom.address : ''
        for (const { address } of envelope.rcptTo) void store(Buffer.concat(parts), from, address)
        done(null, `queued as dev-${count + 1}`)
      })
    },
  })
  // Aborted connections are not errors.
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    close() {
      reports.close()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** A minimal report as defined by RFC 3464. */
function reportOf(from: string, to: string, exists: boolean): string {
  return [
    'From: MAILER-DAEMON@sink.example',
    `To: ${from}`,
    'Subject: Delivery status',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="=_report"',
    '',
    '--=_report',
    'Content-Type: text/plain',
    '',
    exists ? 'The message was delivered.' : 'The mailbox does not exist.',
    '--=_report',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; sink.example',
    '',
    `Final-Recipient: rfc822; ${to}`,
    `Action: ${exists ? 'delivered' : 'failed'}`,
    `Status: ${exists ? '2.0.0' : '5.1.1'}`,
    `Diagnostic-Code: smtp; ${exists ? '250 2.0.0 Ok' : '550 5.1.1 No such user'}`,
    '',
    '--=_report--',
    '',
  ].join('\r\n')
}
