import { openSync, writeSync } from 'node:fs'
import { startSmtpSink } from './smtp-sink.ts'

/**
 * The sink as a process of its own, started by sink.ts: writes down what it received, a line for each mail, before it
 * says so: when (ms), Message-ID, recipient, return path. For recipients of one domain it takes as long as it is told.
 */
const ledger = openSync(process.argv[2] ?? '', 'a')
const paceMs = Number(process.argv[3] ?? 0)
let slow = { domain: '', ms: 0 }
let count = 0

const sink = await startSmtpSink(
  ({ from, to, header }) => {
    const [, messageId = '-'] = /^message-id:\s*(\S+)/im.exec(header) ?? []
    const at = performance.timeOrigin + performance.now()
    writeSync(ledger, `${at.toFixed(2)} ${messageId} ${to} ${from}\n`)
    count++
  },
  (to) => (slow.domain !== '' && to.endsWith(`@${slow.domain}`) ? slow.ms : paceMs),
)
process.send?.({ port: sink.port })
let told = 0
setInterval(() => {
  if (told !== count) process.send?.({ count })
  told = count
}, 50)
process.on('message', (told: { slow: typeof slow }) => {
  slow = told.slow
})
process.on('disconnect', () => process.exit())
