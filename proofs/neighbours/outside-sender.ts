import { SmtpClient } from '../../server/src/testing/peers/smtp-client.ts'
import type { Attacker } from './attack.ts'

/** An outside sender: sends messages by SMTP repeatedly over one connection, until `over` is aborted. */
export interface OutsideMail {
  port: number
  to: readonly string[]
  raw: Buffer
}

export async function sendRepeatedly(
  attacker: Attacker,
  over: AbortSignal,
  { port, to, raw }: OutsideMail,
): Promise<void> {
  let client: SmtpClient | undefined
  while (!over.aborted) {
    const status = await sendOne().catch(() => 0)
    attacker.note({ status, error: 'by SMTP' })
    if (status === 250) continue
    client?.close()
    client = undefined
  }
  client?.close()

  /** Returns the code of the first rejection, otherwise of the last reply; 0 without a reply. */
  async function sendOne(): Promise<number> {
    if (!client || client.isOver) {
      client = await SmtpClient.open(port)
      await client.say('EHLO stranger.test')
    }
    const codeOf = (reply: string | undefined): number => Number(reply?.slice(0, 3) ?? 0)
    for (const line of ['MAIL FROM:<>', ...to.map((address) => `RCPT TO:<${address}>`), 'DATA']) {
      const code = codeOf(await client.say(line))
      if (code < 200 || code > 399) return code
    }
    client.write(raw)
    client.write('\r\n.\r\n')
    return codeOf(await client.reply())
  }
}

/** 790 of these lines with the header of a report. */
export const report = (line: string): Buffer =>
  Buffer.from(
    [
      ...[
        'From: a@stranger.test',
        'Content-Type: multipart/report; report-type=feedback-report; boundary=x',
        '',
      ],
      ...Array.from({ length: 790 }, () => line),
    ].join('\r\n'),
  )

/** Routes mail for `support` at the attacker's domain to one of the attacker's endpoints. Returns the address. */
export async function receiveMail(attacker: Attacker): Promise<string> {
  const { projectId, domainId, domain } = attacker.tenant
  const at = `/projects/${projectId}`
  const made = await attacker.ask(`${at}/endpoints`, {
    body: { name: 'Inbound', url: 'https://hooks.example.com/', events: ['inbound.received'] },
  })
  const endpointId = (made.body as { resource?: { id: number } }).resource?.id
  const address = `support@${domain}`
  const routed = await attacker.ask(`${at}/routing`, {
    body: {
      ...{ domain_id: domainId, match: 'address', address, action: 'endpoint', endpoint_id: endpointId },
      ...{ forward_to: null, is_active: true },
    },
  })
  if (routed.status !== 201) throw new Error(`creating a route failed: ${routed.status} ${routed.error}`)
  return address
}
