import { randomBytes } from 'node:crypto'
import type { Attack } from './attack.ts'
import { receiveMail, sendRepeatedly } from './outside-sender.ts'

/** H6: one message to many tagged forms of one address. Each tag produces an event with the whole text. */
export function inbound({ tags }: { tags: number }): Attack {
  let address = ''
  return {
    ...{ id: 'H6', name: 'inbound', isTogether: true },
    title: `one connection with messages of ${(raw.length / 1e6).toFixed(1)} MB to ${tags} tags of one address`,
    async prepare(attacker) {
      address = await receiveMail(attacker)
      attacker.refusals.push('none: POSTERN_MAX_INBOUND_BYTES_PER_DAY is out of reach in this run')
    },
    async run(attacker, over) {
      const to = Array.from({ length: tags }, (_, number) => address.replace('@', `+${number}@`))
      await sendRepeatedly(attacker, over, { port: attacker.stage.strangers.inboundPort, to, raw })
    },
    async check() {},
  }
}

/** Lines of 900 characters, which SMTP allows. */
const base64 = (octets: Buffer): string => (octets.toString('base64').match(/.{1,900}/g) ?? []).join('\r\n')
const text = base64(Buffer.from('ä"\n'.repeat(160_000).slice(0, 400_000)))
const part = (type: string) =>
  ['--y', `Content-Type: ${type}; charset=utf-8`, 'Content-Transfer-Encoding: base64', '', text].join('\r\n')
const raw = Buffer.from(
  [
    ...['From: a@stranger.test', 'To: b@stranger.test', 'MIME-Version: 1.0'],
    ...['Content-Type: multipart/mixed; boundary=x', ''],
    ...['--x', 'Content-Type: multipart/alternative; boundary=y', ''],
    ...[part('text/plain'), part('text/html'), '--y--'],
    ...['--x', 'Content-Type: application/octet-stream', 'Content-Disposition: attachment; filename=a'],
    ...['Content-Transfer-Encoding: base64', '', base64(randomBytes(250_000)), '--x--'],
  ].join('\r\n'),
)
