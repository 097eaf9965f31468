import { readFileSync } from 'node:fs'
import nodemailer from 'nodemailer'

/** The comparison program that bench:dispatch starts: plain nodemailer composes, signs and sends the messages. */
const { port, sessions, mailsPerSession, count, domain, privateKey, sampleMessage } = JSON.parse(
  readFileSync(process.argv[2] ?? '', 'utf8'),
) as {
  port: number
  sessions: number
  mailsPerSession: number
  count: number
  domain: string
  privateKey: string
  sampleMessage: { subject: string; text: string; html: string }
}

const transport = nodemailer.createTransport({
  pool: true,
  host: '127.0.0.1',
  port,
  maxConnections: sessions,
  maxMessages: mailsPerSession,
  dkim: { domainName: domain, keySelector: 'bench', privateKey },
})

// Twice the number of sessions: enough to keep them busy without queueing everything at once.
let next = 0
const sendOn = async (): Promise<void> => {
  while (next < count) {
    const to = `ada${next++}@example.net`
    await transport.sendMail({ from: `Shop <shop@${domain}>`, to, ...sampleMessage })
  }
}
await Promise.all(Array.from({ length: 2 * sessions }, sendOn))
transport.close()
// Runs until its parent has read the results and disconnects.
process.channel?.ref()
process.on('disconnect', () => process.exit())
