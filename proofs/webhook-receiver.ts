import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeCertificate } from '../server/src/testing/peers/certificate.ts'
import { FaultyProxy } from '../server/src/testing/peers/faulty-proxy.ts'

/** Customers' receivers: one HTTPS server, reached directly and through a proxy that injects faults. */
export interface HookReceiver {
  /** Addresses begin so. The path says which endpoint it is. */
  good: string
  bad: string
  line: FaultyProxy
  /** Whoever comes by a path that begins so waits that long for an answer. */
  slowDown(prefix: string, ms: number): void
  /** Requests to paths with this prefix are answered after `release`. */
  hold(prefix: string): void
  release(): void
  /** Paths at which a request waits for that, how many requests do, and how many were ever given up by who made them. */
  held(): { paths: number; pending: number; givenUp: number }
  taken: Taken[]
  /** Of every part of Postern: so that it calls what is here. */
  settings: Record<string, string>
  close(): Promise<void>
}

export interface Taken {
  path: string
  eventId: string
  /** In ms, by the clock of this machine. */
  at: number
}

export async function startHookReceiver(): Promise<HookReceiver> {
  const home = mkdtempSync(path.join(tmpdir(), 'postern-hooks-'))
  const { files, cert, key } = writeCertificate(home)
  const taken: Taken[] = []
  let slow = { prefix: '', ms: 0 }
  let hold: { prefix: string; released: PromiseWithResolvers<void> } | undefined
  const waiting = new Map<string, number>()
  let givenUp = 0
  const isAnswerable = async (path: string, response: ServerResponse): Promise<void> => {
    if (!hold || !path.startsWith(hold.prefix)) return sleep(path.startsWith(slow.prefix) ? slow.ms : 0)
    waiting.set(path, (waiting.get(path) ?? 0) + 1)
    const gone = new Promise<'gone'>((resolve) => response.once('close', () => resolve('gone')))
    if ((await Promise.race([hold.released.promise, gone])) === 'gone') givenUp++
    const left = (waiting.get(path) ?? 1) - 1
    if (left > 0) waiting.set(path, left)
    else waiting.delete(path)
  }
  const server = createServer({ cert, key }, (request, response) => {
    request.on('error', () => {})
    request.resume().on('end', () => {
      const { url = '', headers } = request
      const at = performance.timeOrigin + performance.now()
      taken.push({ path: url, eventId: String(headers['webhook-id']), at })
      void isAnswerable(url, response).then(() => response.writeHead(204).end())
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.address() as AddressInfo
  const line = await FaultyProxy.keep(port)
  return {
    good: `https://127.0.0.1:${port}`,
    bad: `https://127.0.0.1:${line.port}`,
    line,
    slowDown(prefix, ms) {
      slow = { prefix, ms }
    },
    hold(prefix) {
      hold = { prefix, released: Promise.withResolvers() }
    },
    release() {
      hold?.released.resolve()
      hold = undefined
    },
    held: () => ({
      paths: waiting.size,
      pending: [...waiting.values()].reduce((sum, count) => sum + count, 0),
      givenUp,
    }),
    taken,
    settings: {
      POSTERN_WEBHOOK_PORTS: `${port}, ${line.port}`,
      POSTERN_PRIVATE_NETWORKS: '127.0.0.1',
      POSTERN_WEBHOOK_CA_FILE: files.certificate,
    },
    async close() {
      await line.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      rmSync(home, { recursive: true, force: true })
    },
  }
}
