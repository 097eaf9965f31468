import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, type Attacker, untilOver } from './attack.ts'

/** M8: large mails, of which a worker takes only a few at once. Each recorded attempt must be a real one. */
export function large({ mails, bytes }: { mails: number; bytes: number }): Attack {
  let handedOverBefore = 0
  return {
    ...{ id: 'M8', name: 'large' },
    title: `${mails} mails of ${(bytes / 2 ** 20).toFixed(1)} MiB that wait to be sent`,
    async prepare(attacker) {
      attacker.refusals.push('none: large mails wait for a slot of the worker')
    },
    async run(attacker, over) {
      const content = randomBytes(bytes).toString('base64')
      for (let first = 0; first < mails && !over.aborted; first += recipientsEach) {
        const count = Math.min(recipientsEach, mails - first)
        const to = Array.from({ length: count }, (_, place) => `a${first + place}@${recipientsDomain}`)
        await attacker.ask('/messages', {
          body: {
            ...{ from: `shop@${attacker.tenant.domain}`, to, subject: 'Large', text: 'See the attachment.' },
            attachments: [{ filename: 'invoice.pdf', content }],
          },
        })
      }
      await untilOver(over)
      // A slow machine has not sent the first of them yet.
      for (const deadline = Date.now() + attacker.stage.patienceMs; Date.now() < deadline; await sleep(200))
        if ((await handedOver(attacker)) > handedOverBefore) break
    },
    async check(attacker) {
      attacker.requireAnswer('202')
      const { stage, tenant } = attacker
      const attempts = await stage.count('mail.attempts where project_id = $1', tenant.projectId)
      const all = await handedOver(attacker)
      const received = all - handedOverBefore
      handedOverBefore = all
      attacker.refusals.push(`${attempts} attempts for ${received} handed over`)
      if (received === 0) attacker.faults.push('no large mail was handed over, so nothing was proved')
      if (attempts !== received)
        attacker.faults.push(`${attempts} attempts were counted, and ${received} large mails handed over`)
    },
  }
}

/** The most that a message may have. */
const recipientsEach = 50
const recipientsDomain = 'large.test'

async function handedOver({ stage }: Attacker): Promise<number> {
  const received = await stage.sink.read()
  return received.filter(({ recipient }) => recipient.endsWith(`@${recipientsDomain}`)).length
}
