import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleanUp } from './cleanup.ts'

/** A line to a port on this machine on which every answer takes its time. */
export interface SlowLine {
  port: number
  /** May be changed at any time. */
  latencyMs: number
}

export async function openSlowLine(to: number, latencyMs: number): Promise<SlowLine> {
  const line: SlowLine = { port: 0, latencyMs }
  const open = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
    near.pipe(far)
    far.pipe(delayed(line)).pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  line.port = address.port
  cleanUp(async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return line
}

const delayed = (line: SlowLine): Transform =>
  new Transform({
    transform(chunk, _encoding, callback) {
      void sleep(line.latencyMs).then(() => callback(null, chunk))
    },
  })
