import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack, Attacker } from './attack.ts'

export interface MemorySizes {
  bodies: number
  bytes: number
  /** The heap size of the API process. */
  heapMib: number
  /** How long the last octets of all bodies are withheld. */
  holdMs: number
}

/** H4: large bodies whose last octets are withheld and then all sent at the same time. The process must survive. */
export function memory({ bodies, bytes, heapMib, holdMs }: MemorySizes): Attack {
  // The sender's domain is not the attacker's, so nothing is stored.
  const frame = { from: 'a@other.test', to: ['b@attacked.test'], subject: 'Large', text: '' }
  const text = 'x'.repeat(bytes - JSON.stringify(frame).length)
  const body = Buffer.from(JSON.stringify({ ...frame, text }))
  let mostOpen = 0
  return {
    ...{ id: 'H4', name: 'memory' },
    title: `${bodies} concurrent bodies of ${(bytes / 2 ** 20).toFixed(0)} MiB, and an API heap of ${heapMib} MiB`,
    api: { nodeOptions: [`--max-old-space-size=${heapMib}`] },
    async prepare(attacker) {
      attacker.refusals.push('none: bodies wait for their share of memory')
    },
    async run(attacker, over) {
      while (!over.aborted) {
        const requests = Array.from({ length: bodies }, () => begin(attacker, body))
        const opened = await Promise.all(requests.map(({ opened }) => opened))
        mostOpen = Math.max(mostOpen, opened.filter((isOpen) => isOpen).length)
        await sleep(holdMs, undefined, { signal: over }).catch(() => {})
        for (const { sent } of requests) sent.end(body.subarray(-heldOctets))
        await Promise.all(requests.map(({ answered }) => answered))
      }
    },
    async check(attacker) {
      if (mostOpen < bodies)
        attacker.faults.push(`only ${mostOpen} of ${bodies} bodies were sent concurrently`)
      if (!attacker.stage.isApiAlive()) attacker.faults.push('the API process exited')
    },
  }
}

const heldOctets = 10

/** Sends all but the last octets. */
function begin(attacker: Attacker, body: Buffer) {
  const { stage, tenant } = attacker
  const sent: ClientRequest = request(`${stage.postern.url}/v1/messages`, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${tenant.secret}`,
      'content-type': 'application/json',
      'content-length': body.length,
    },
  })
  // A reset connection can emit more than one error.
  sent.on('error', () => {})
  const opened = once(sent, 'socket')
    .then(([socket]) => once(socket, 'connect').then(() => true))
    .catch(() => false)
  const answered = once(sent, 'response')
    .then(async ([response]: IncomingMessage[]) => {
      if (!response) throw new Error('no response')
      const chunks = await response.toArray()
      const { error = '' } = JSON.parse(Buffer.concat(chunks).toString() || '{}')
      return { status: response.statusCode ?? 0, error }
    })
    .catch((error: NodeJS.ErrnoException) => ({ status: 0, error: error.code ?? error.message }))
  sent.write(body.subarray(0, -heldOctets))
  return { sent, opened, answered: answered.then((answer) => attacker.note(answer)) }
}
