import { type Attack, repeat } from './attack.ts'
import type { Cap } from './cap.ts'
import { makeManyEndpoints, sendBatch } from './endpoints.ts'

/** C1: each mail handed over is an event for very many endpoints. */
export function resend({ endpoints, mails }: { endpoints: number; mails: number }): Attack {
  let cap: Cap
  return {
    ...{ id: 'C1', name: 'resend' },
    title: `${endpoints} endpoints for message.sent, batches of ${mails} mails`,
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

/** As many mails a second as a worker hands over, about. */
const pauseMs = 250
