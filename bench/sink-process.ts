import { openSync, writeSync } from 'node:fs'
import type { SinkOrder, SinkState } from './sink.ts'
import { startSmtpSink } from './smtp-sink.ts'

/**
 * The sink as a separate process, started by sink.ts. Before it acknowledges a message it records a line: time (ms),
 * Message-ID, recipient, return path. For recipients of one domain it can delay the acknowledgement, or withhold it
 * until the messages are released.
 */
const ledger = openSync(process.argv[2] ?? '', 'a')
const paceMs = Number(process.argv[3] ?? 0)
let slow = { domain: '', ms: 0 }
let held = { domain: '', released: Promise.withResolvers<void>() }
const state: SinkState = { count: 0, pending: 0, givenUp: 0 }

const isAt = (to: string, domain: string): boolean => domain !== '' && to.endsWith(`@${domain}`)

const sink = await startSmtpSink(
  ({ from, to, header }) => {
    const [, messageId = '-'] = /^message-id:\s*(\S+)/im.exec(header) ?? []
    const at = performance.timeOrigin + performance.now()
    writeSync(ledger, `${at.toFixed(2)} ${messageId} ${to} ${from}\n`)
    state.count++
  },
  (to, closed) => (isAt(to, held.domain) ? untilReleased(closed) : isAt(to, slow.domain) ? slow.ms : paceMs),
)

async function untilReleased(closed: Promise<void>): Promise<void> {
  state.pending++
  const isGone = await Promise.race([held.released.promise.then(() => false), closed.then(() => true)])
  state.pending--
  if (isGone) state.givenUp++
}

process.send?.({ port: sink.port })
let told = ''
setInterval(() => {
  const now = JSON.stringify(state)
  if (told !== now) process.send?.(state)
  told = now
}, 50)
process.on('message', (order: SinkOrder) => {
  if ('slow' in order) slow = order.slow
  else {
    held.released.resolve()
    held = { domain: order.hold, released: Promise.withResolvers<void>() }
  }
})
process.on('disconnect', () => process.exit())
