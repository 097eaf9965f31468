// Startup and graceful shutdown of an SMTP listener.

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../platform/telemetry/log.ts'
import type { Certificate } from './certificate.ts'
import type { StrictSmtpServer } from './strict-server.ts'

/** One of the intake's running SMTP listeners. */
export interface Listener {
  port: number
  /** Replaces the certificate for new connections. */
  renew(certificate: Certificate): void
  /** Accepts no new connections; a client that is sending a message can finish it. */
  stop(graceMs: number): Promise<void>
}

const stopPauseMs = 20

export async function listen(
  server: StrictSmtpServer,
  { host, port, log }: { host: string; port: number; log: Logger },
): Promise<Listener> {
  // An error on one connection, which is then closed: the client disconnected or did not use TLS.
  server.on('error', (error) => log.debug({ err: error }, 'SMTP connection failed'))
  const listening = server.listen(port, host)
  await once(listening, 'listening')
  const address = listening.address()
  if (address === null || typeof address === 'string') throw new Error('the SMTP listener has no TCP port')
  return {
    port: address.port,
    renew: (certificate) => server.updateSecureContext({ ...certificate }),
    stop: (graceMs) => stop(server, graceMs),
  }
}

/** Without this, `server.close` would wait half a minute for clients to disconnect. */
async function stop(server: StrictSmtpServer, graceMs: number): Promise<void> {
  const sockets = [...server.connections].map(({ _socket }) => _socket)
  const closed = new Promise<void>((resolve) => server.close(resolve))
  const end = Date.now() + graceMs
  while (sockets.some(({ destroyed }) => !destroyed) && Date.now() < end) {
    for (const connection of server.connections) {
      if (!connection._dataStream) connection.send(421, '4.3.2 Service shutting down, closing connection')
    }
    await sleep(stopPauseMs)
  }
  for (const socket of sockets) socket.destroy()
  await closed
}
