import type { Attack } from './attack.ts'
import { report, sendRepeatedly } from './outside-sender.ts'

/** H5: small messages to the complaint address that are not complaints; each is parsed. */
export function fbl(): Attack {
  return {
    ...{ id: 'H5', name: 'fbl', isTogether: true },
    title: `${connections} connections with messages of 790 empty lines to fbl@`,
    async prepare(attacker) {
      attacker.refusals.push('none: outside senders have no cap')
    },
    async run(attacker, over) {
      const { bouncePort: port, returnPathHost } = attacker.stage.strangers
      const mail = { port, to: [`fbl@${returnPathHost}`], raw: report('') }
      await Promise.all(Array.from({ length: connections }, () => sendRepeatedly(attacker, over, mail)))
    },
    async check() {},
  }
}

const connections = 4
