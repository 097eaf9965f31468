import type { Attack } from './attack.ts'
import { receiveMail, report, sendRepeatedly } from './outside-sender.ts'

/** H5 and H6: messages that are expensive to parse, as inbound mail and as reports. */
export function cpu({ lines }: { lines: number }): Attack {
  const empty = Buffer.from(`From: a@stranger.test\r\n\r\n${'\r\n'.repeat(lines)}`)
  let address = ''
  return {
    ...{ id: 'H5/H6', name: 'cpu', isTogether: true },
    title: `${inboundConnections} connections with inbound messages of ${lines} empty lines, one each with four kinds of reports`,
    async prepare(attacker) {
      address = await receiveMail(attacker)
      attacker.refusals.push('none: outside senders have no cap')
    },
    async run(attacker, over) {
      const { bouncePort, inboundPort, returnPathHost } = attacker.stage.strangers
      const inbound = { port: inboundPort, to: [address], raw: empty }
      const reports = kinds.map((line) => ({
        ...{ port: bouncePort, to: [`fbl@${returnPathHost}`], raw: report(line) },
      }))
      const mails = [...Array.from({ length: inboundConnections }, () => inbound), ...reports]
      await Promise.all(mails.map((mail) => sendRepeatedly(attacker, over, mail)))
    },
    async check() {},
  }
}

const inboundConnections = 5
const kinds = ['', '--x', 'a'.repeat(70), `X-A: ${'=?utf-8?q?a?='.repeat(4)}`]
