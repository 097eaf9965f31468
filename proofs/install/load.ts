import { setTimeout as sleep } from 'node:timers/promises'
import type { World } from './internet.ts'

export interface Sent {
  accepted: number
  lost: number
  twice: number
}

const everyMs = 100
const arriveWithinMs = 180_000

/** Sends messages one after the other while something happens, and then waits until all that were accepted have arrived. */
export async function sendDuring(key: string, world: World, act: () => Promise<void>): Promise<Sent> {
  const accepted: string[] = []
  let isActing = true
  const sending = (async () => {
    for (let number = 0; isActing; number++) {
      const to = `during-${number}@example.net`
      await send(key, to)
      accepted.push(to)
      await sleep(everyMs)
    }
  })()
  try {
    await sleep(2_000)
    await act()
    await sleep(2_000)
  } finally {
    isActing = false
  }
  await sending
  const arrivals = (to: string) => world.received.filter((mail) => mail.to.includes(to)).length
  const end = performance.now() + arriveWithinMs
  while (accepted.some((to) => arrivals(to) === 0) && performance.now() < end) await sleep(500)
  return {
    accepted: accepted.length,
    lost: accepted.filter((to) => arrivals(to) === 0).length,
    twice: accepted.filter((to) => arrivals(to) > 1).length,
  }
}

/** Until it is accepted, with the same key for idempotency, as a client must. */
async function send(key: string, to: string): Promise<void> {
  for (;;) {
    const response = await fetch('http://127.0.0.1:8080/v1/messages', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'idempotency-key': to,
      },
      body: JSON.stringify({ from: 'hello@shop.example.org', to: [to], subject: 'During', text: 'Upgrade' }),
      signal: AbortSignal.timeout(10_000),
    }).catch(() => undefined)
    if (response?.status === 202) {
      await response.body?.cancel()
      return
    }
    if (response !== undefined && response.status < 500)
      throw new Error(`${response.status} ${await response.text()}`)
    await response?.body?.cancel()
    await sleep(200)
  }
}
