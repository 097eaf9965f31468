import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, type Attacker, untilOver } from './attack.ts'

/**
 * M8: large messages. A worker claims only a few of them at a time, and every recorded attempt must have taken place.
 */
export function large({ mails, bytes }: { mails: number; bytes: number }): Attack {
  let handedOverBefore = 0
  return {
    ...{ id: 'M8', name: 'large' },
    title: `${mails} queued messages of ${(bytes / 2 ** 20).toFixed(1)} MiB`,
    async prepare(attacker) {
      attacker.refusals.push('none: large messages wait for a slot of the worker')
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
      // On a slow machine, the first message may not have been sent yet.
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
      if (received === 0) attacker.faults.push('no large message was handed over, so nothing was proved')
      if (attempts !== received)
        attacker.faults.push(
          `${attempts} attempts were counted, but ${received} large messages were handed over`,
        )
    },
  }
}

/** The maximum number of recipients of a message. */
const recipientsEach = 50
const recipientsDomain = 'large.test'

async function handedOver({ stage }: Attacker): Promise<number> {
  const received = await stage.sink.read()
  return received.filter(({ recipient }) => recipient.endsWith(`@${recipientsDomain}`)).length
}
