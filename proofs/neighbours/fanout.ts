import { type Attack, repeat } from './attack.ts'
import type { Cap } from './cap.ts'
import { makeManyEndpoints, sendBatch } from './endpoints.ts'

/** H1: each accepted message produces an event for many endpoints, and many requests send messages concurrently. */
export function fanout({ endpoints, mails }: { endpoints: number; mails: number }): Attack {
  let cap: Cap
  return {
    ...{ id: 'H1', name: 'fanout' },
    title: `${endpoints} endpoints for message.accepted, ${requestsAtOnce} concurrent batches of ${mails} messages`,
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
