import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../platform/telemetry/log.ts'
import type { Certificate } from './certificate.ts'
import type { StrictSmtpServer } from './strict-server.ts'

/** What every listener of the intake has: a port, and an orderly end. */
export interface Listener {
  port: number
  /** From now on, for whoever connects. */
  renew(certificate: Certificate): void
  /** Nobody new is let in; who is in the middle of a mail may finish it. */
  stop(graceMs: number): Promise<void>
}

const stopPauseMs = 20

export async function listen(
  server: StrictSmtpServer,
  { host, port, log }: { host: string; port: number; log: Logger },
): Promise<Listener> {
  // Of one connection, which is over: somebody hung up, or spoke no TLS.
  server.on('error', (error) => log.debug({ err: error }, 'a connection failed'))
  const listening = server.listen(port, host)
  await once(listening, 'listening')
  const address = listening.address()
  if (address === null || typeof address === 'string') throw new Error('it listens at no port')
  return {
    port: address.port,
    renew: (certificate) => server.updateSecureContext({ ...certificate }),
    stop: (graceMs) => stop(server, graceMs),
  }
}

/** `server.close` alone would wait for everybody to leave by themselves, for half a minute. */
async function stop(server: StrictSmtpServer, graceMs: number): Promise<void> {
  const sockets = [...server.connections].map(({ _socket }) => _socket)
  const closed = new Promise<void>((resolve) => server.close(resolve))
  const end = Date.now() + graceMs
  while (sockets.some(({ destroyed }) => !destroyed) && Date.now() < end) {
    for (const connection of server.connections) {
      if (!connection._dataStream) connection.send(421, '4.3.2 Closing')
    }
    await sleep(stopPauseMs)
  }
  for (const socket of sockets) socket.destroy()
  await closed
}
