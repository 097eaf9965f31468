import assert from 'node:assert/strict'
import { submissionDeps } from '../../context/context.ts'
import { type SubmissionDeps, startSubmission } from '../../intake/submission/submission.ts'
import { makeCertificate } from '../peers/certificate.ts'
import { SmtpClient } from '../peers/smtp-client.ts'
import type { TestApi } from './api.ts'
import { cleanUp } from './cleanup.ts'

const certificate = makeCertificate()

export interface Envelope {
  from?: string
  to?: readonly string[]
  /** Parameters of the MAIL command. */
  parameters?: string
}

/** The two submission listeners and an SMTP client for them. */
export async function openSubmission(api: TestApi, changes: Partial<SubmissionDeps> = {}) {
  const listeners = await startSubmission({
    ...submissionDeps(api.context, certificate),
    ports: { startTls: 0, tls: 0 },
    ...changes,
  })
  const [startTls, tls] = listeners
  assert.ok(startTls && tls)
  const stop = async (graceMs: number) =>
    void (await Promise.all(listeners.map((listener) => listener.stop(graceMs))))
  cleanUp(() => stop(1000))

  /** Returns a client that uses TLS, has sent EHLO and, if a key is passed, has authenticated. */
  async function open(secret?: string): Promise<SmtpClient> {
    const client = await SmtpClient.openTls(tls?.port ?? 0)
    cleanUp(async () => client.close())
    await client.say('EHLO client.example')
    if (secret !== undefined) assert.match((await client.say(plainOf(secret))) ?? '', /^235 2\.7\.0/)
    return client
  }

  return { startTls, tls, open, stop }
}

/** An AUTH PLAIN command. The user name is arbitrary. */
export const plainOf = (secret: string): string =>
  `AUTH PLAIN ${Buffer.from(`\0postern\0${secret}`).toString('base64')}`

/** Submits one message. Returns the first error reply or the final reply. */
export async function submit(
  client: SmtpClient,
  raw: string | Buffer,
  { from = '', to = ['anna@example.net'], parameters = '' }: Envelope = {},
): Promise<string> {
  const mail = `MAIL FROM:<${from}>${parameters && ` ${parameters}`}`
  for (const line of [mail, ...to.map((one) => `RCPT TO:<${one}>`), 'DATA']) {
    const reply = (await client.say(line)) ?? 'gone'
    if (!/^[23]/.test(reply)) return reply
  }
  client.write(raw)
  client.write('\r\n.\r\n')
  return (await client.reply()) ?? 'gone'
}

export const idIn = (reply: string): string => {
  const [, id] = /^250 2\.0\.0 Ok: queued as ([0-9a-f-]{36})$/.exec(reply) ?? []
  assert.ok(id !== undefined, reply)
  return id
}

/** A short message. */
export const someText = (domain: string, changes: { fields?: string[]; body?: string } = {}): string =>
  [
    `From: Shop <orders@${domain}>`,
    'To: anna@example.net',
    'Subject: Your order',
    ...(changes.fields ?? []),
    '',
    changes.body ?? 'It is on its way.',
  ].join('\r\n')
