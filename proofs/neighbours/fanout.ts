import { type Attack, repeat } from './attack.ts'
import type { Cap } from './cap.ts'
import { makeManyEndpoints, sendBatch } from './endpoints.ts'

/** H1: each accepted mail is an event for many endpoints, and many requests send mail concurrently. */
export function fanout({ endpoints, mails }: { endpoints: number; mails: number }): Attack {
  let cap: Cap
  return {
    ...{ id: 'H1', name: 'fanout' },
    title: `${endpoints} endpoints for message.accepted, ${requestsAtOnce} batches of ${mails} mails at once`,
    async prepare(attacker) {
      cap = await makeManyEndpoints(attacker, 'message.accepted', endpoints)
    },
    run: (attacker, over) => repeat(requestsAtOnce, over, () => sendBatch(attacker, mails)),
    async check(attacker) {
      attacker.requireAnswer('202')
      await cap.requireRefusal()
    },
  }
}

const requestsAtOnce = 16
