import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeCertificate } from '../server/src/testing/peers/certificate.ts'
import { FaultyProxy } from '../server/src/testing/peers/faulty-proxy.ts'

/** Customers' webhook receivers: one HTTPS server, reached directly and through a proxy that injects faults. */
export interface HookReceiver {
  /** The prefix of the endpoints' URLs. The path identifies the endpoint. */
  good: string
  bad: string
  line: FaultyProxy
  /** Delays responses to requests whose path has this prefix. */
  slowDown(prefix: string, ms: number): void
  /** Withholds responses to requests whose path has this prefix until `release`. */
  hold(prefix: string): void
  release(): void
  /**
   * The number of paths with pending requests, the number of pending requests, and the number that the client gave up
   * on.
   */
  held(): { paths: number; pending: number; givenUp: number }
  taken: Taken[]
  /** Settings with which Postern accepts this receiver. */
  settings: Record<string, string>
  close(): Promise<void>
}

export interface Taken {
  path: string
  eventId: string
  /** Time in ms, by this machine's clock. */
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
