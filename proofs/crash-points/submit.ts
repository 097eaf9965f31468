import type { SampleMessage } from '../../bench/sample-message.ts'
import { SmtpClient } from '../../server/src/testing/peers/smtp-client.ts'

/** A message for the submission port with implicit TLS. */
export interface Submission {
  from: string
  to: readonly string[]
  sampleMessage: SampleMessage
  /** An API key. */
  password: string
}

export interface Submitted {
  /** The id in the 250 reply; undefined if there was no such reply. */
  id: string | undefined
  /** Whether the message was sent completely. It may then have been accepted even without a reply. */
  isWhole: boolean
}

const timeoutMs = 10_000

/** Tries once. Throws if the message is rejected permanently. */
export async function submit(port: number, submission: Submission): Promise<Submitted> {
  const client = await SmtpClient.openTls(port).catch(() => undefined)
  if (!client) return { id: undefined, isWhole: false }
  const timer = setTimeout(() => client.close(), timeoutMs)
  try {
    return await converse(client, submission)
  } finally {
    clearTimeout(timer)
    client.close()
  }
}

async function converse(
  client: SmtpClient,
  { from, to, sampleMessage, password }: Submission,
): Promise<Submitted> {
  const login = Buffer.from(`\0postern\0${password}`).toString('base64')
  const recipients = to.map((recipient) => `RCPT TO:<${recipient}>`)
  for (const line of [
    'EHLO client.test',
    `AUTH PLAIN ${login}`,
    `MAIL FROM:<${from}>`,
    ...recipients,
    'DATA',
  ]) {
    if (!isYes(await heard(client.say(line)))) return { id: undefined, isWhole: false }
  }
  client.write(`${mimeOf(from, to, sampleMessage)}\r\n.\r\n`)
  const reply = await heard(client.reply())
  if (!isYes(reply)) return { id: undefined, isWhole: true }
  const [, id] = /queued as ([0-9a-f-]{36})$/.exec(reply ?? '') ?? []
  if (id === undefined) throw new Error(`unexpected reply to an accepted message: ${reply}`)
  await heard(client.say('QUIT'))
  // The server closes the connection.
  await heard(client.reply())
  return { id, isWhole: true }
}

/** Returns undefined if the connection is closed. */
const heard = (reply: Promise<string | undefined>): Promise<string | undefined> =>
  reply.catch(() => undefined)

function isYes(reply: string | undefined): boolean {
  if (reply?.startsWith('5')) throw new Error(`the message was rejected: ${reply}`)
  return /^[23]/.test(reply ?? '')
}

const mimeOf = (from: string, to: readonly string[], { subject, text }: SampleMessage): string =>
  [`From: <${from}>`, `To: ${to.join(', ')}`, `Subject: ${subject}`, '', ...text.split('\n')].join('\r\n')
