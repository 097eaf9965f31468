import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createTransport } from 'nodemailer'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'

/**
 * The mail server of `npm run dev`: takes whatever Postern sends, keeps it as a file, shows a line, and reports back as
 * an MTA does, so that a message becomes `delivered`. An address that begins with `bounce` does not exist. Nothing
 * leaves this machine.
 */
export interface DevSink {
  port: number
  close(): Promise<void>
}

export interface DevSinkOptions {
  /** Where the mails are kept. */
  folder: string
  /** Where reports go: POSTERN_BOUNCE_PORT. */
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
  let taken = 0

  async function take(raw: Buffer, from: string, to: string): Promise<void> {
    const { subject } = await PostalMime.parse(raw)
    const stamp = new Date().toISOString().replace(/[:.]/g, '-')
    const file = path.join(folder, `${stamp}-${++taken}.eml`)
    await writeFile(file, raw)
    const isThere = !to.startsWith('bounce')
    say(
      `  mail for ${to}: "${subject ?? ''}" (${raw.length} bytes, ${path.relative('', file)})${isThere ? '' : ', which bounces'}`,
    )
    // The service's own mail wants no reports.
    if (!from.startsWith('bounce-')) return
    await reports
      .sendMail({ envelope: { from: '', to: [from] }, raw: reportOf(from, to, isThere) })
      .catch(({ message }: Error) => say(`  no report about the mail for ${to} could be given: ${message}`))
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
        for (const { address } of envelope.rcptTo) void take(Buffer.concat(parts), from, address)
        done(null, `queued as dev-${taken + 1}`)
      })
    },
  })
  // A peer that goes away in the middle of something is nothing to end for.
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

/** RFC 3464, as short as it may be. */
function reportOf(from: string, to: string, isThere: boolean): string {
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
    isThere ? 'It was delivered.' : 'There is no such mailbox.',
    '--=_report',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; sink.example',
    '',
    `Final-Recipient: rfc822; ${to}`,
    `Action: ${isThere ? 'delivered' : 'failed'}`,
    `Status: ${isThere ? '2.0.0' : '5.1.1'}`,
    `Diagnostic-Code: smtp; ${isThere ? '250 2.0.0 Ok' : '550 5.1.1 No such user'}`,
    '',
    '--=_report--',
    '',
  ].join('\r\n')
}
