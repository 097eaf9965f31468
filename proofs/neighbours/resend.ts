import { type Attack, repeat } from './attack.ts'
import type { Cap } from './cap.ts'
import { makeManyEndpoints, sendBatch } from './endpoints.ts'

/** C1: each message sent produces an event for a very large number of endpoints. */
export function resend({ endpoints, mails }: { endpoints: number; mails: number }): Attack {
  let cap: Cap
  return {
    ...{ id: 'C1', name: 'resend' },
    title: `${endpoints} endpoints for message.sent, batches of ${mails} messages`,
    async prepare(attacker) {
      cap = await makeManyEndpoints(attacker, 'message.sent', endpoints)
    },
    run: (attacker, over) => repeat(1, over, () => sendBatch(attacker, mails), pauseMs),
    async check(attacker) {
      attacker.requireAnswer('202')
      await cap.requireRefusal()
    },
  }
}

/** The pause between batches. It results in about as many messages per second as a worker can send. */
const pauseMs = 250
