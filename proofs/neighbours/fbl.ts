import type { Attack } from './attack.ts'
import { bring, report } from './strangers.ts'

/** H5: small mails for complaints that are none, each of which is parsed. */
export function fbl(): Attack {
  return {
    ...{ id: 'H5', name: 'fbl', isTogether: true },
    title: `${connections} connections with mails of 790 empty lines to fbl@`,
    async prepare(attacker) {
      attacker.refusals.push('none: strangers have no cap')
    },
    async run(attacker, over) {
      const { bouncePort: port, returnPathHost } = attacker.stage.strangers
      const mail = { port, to: [`fbl@${returnPathHost}`], raw: report('') }
      await Promise.all(Array.from({ length: connections }, () => bring(attacker, over, mail)))
    },
    async check() {},
  }
}

const connections = 4
