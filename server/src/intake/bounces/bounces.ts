import type { Certificate } from '../smtp/certificate.ts'
import { ConnectionLimit } from '../smtp/connection-limit.ts'
import { type Listener, listen } from '../smtp/listener.ts'
import { StrictSmtpServer } from '../smtp/strict-server.ts'
import { BounceSession, type BounceSessionDeps, maxBytes } from './bounce-session.ts'

/**
 * The MX of the return-path host: bounces and delivery reports at return paths, complaints at `fbl` and
 * `abuse`. It never relays, delivers or replies by mail. A report is stored or ignored.
 *
 * 250 is sent only after the transaction has committed. If anything fails before that, the client still has
 * the report and retries.
 */
export interface BounceDeps extends BounceSessionDeps {
  host: string
  port: number
  /** Enables STARTTLS. */
  tls: Certificate | undefined
}

const maxClients = 500
// Postfix opens 20 connections per destination (default_destination_concurrency_limit), and several Postfix
// servers can share one address.
const maxClientsPerNetwork = 50
const idleMs = 60_000
const lifetimeMs = 10 * 60_000

export async function startBounces(deps: BounceDeps): Promise<Listener> {
  const bounces = new BounceSession(deps)
  const server = new StrictSmtpServer({
    listener: 'bounces',
    name: deps.returnPathHost,
    disabledCommands: deps.tls ? ['AUTH'] : ['AUTH', 'STARTTLS'],
    ...deps.tls,
    size: maxBytes,
    rejectOversized: true,
    // A report is about one message. A client with two reports sends them in separate transactions.
    maxRecipients: 1,
    maxClients,
    socketTimeout: idleMs,
    connectionLimit: new ConnectionLimit(maxClientsPerNetwork),
    lifetimeMs,
    // Unknown recipients are counted per network.
    maxErrors: Number.POSITIVE_INFINITY,
    disableReverseLookup: true,
    onRcptTo: (address, { remoteAddress }, callback) =>
      void bounces.checkRecipient(address, remoteAddress).then(callback),
    onData: (stream, session, callback) =>
      void bounces.receive(stream, session).then(
        () => callback(null, '2.0.0 Ok: report processed'),
        (error) => callback(error),
      ),
  })
  return listen(server, deps)
}
