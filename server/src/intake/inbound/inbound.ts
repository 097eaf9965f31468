import type { SMTPServerOptions } from 'smtp-server'
import { maxMessageBytes } from '../../core/mail/messages/draft.ts'
import { maxRecipients } from '../../core/mail/messages/wire.ts'
import type { Certificate } from '../smtp/certificate.ts'
import { type Listener, listen } from '../smtp/listener.ts'
import { refusalOf } from '../smtp/replies.ts'
import { type Strictness, StrictSmtpServer } from '../smtp/strict-server.ts'
import { InboundSession, type InboundSessionDeps } from './inbound-session.ts'

/**
 * The MX for customers' domains: accepts mail only to addresses that a customer's route accepts. 250 is sent
 * only after the transaction has committed. If anything fails before that, the client still has the message
 * and retries.
 *
 * AUTH is not offered, because mail is not submitted here. CHUNKING is not offered either: DATA is the only
 * command for mail data.
 */
export interface InboundDeps extends InboundSessionDeps {
  host: string
  port: number
  /** Enables STARTTLS. */
  tls: Certificate | undefined
}

const maxClients = 500
// RFC 5321 §4.5.3.2.7.
const idleMs = 5 * 60_000
const lifetimeMs = 30 * 60_000
// More errors than a single message with too many recipients causes. Unknown recipients are counted per
// network.
const maxErrors = 200

export function startInbound(deps: InboundDeps): Promise<Listener> {
  const inbound = new InboundSession(deps)
  return listen(new StrictSmtpServer(optionsOf(deps, inbound)), deps)
}

const optionsOf = ({ name, tls }: InboundDeps, inbound: InboundSession) =>
  ({
    listener: 'inbound',
    name,
    ...tls,
    disabledCommands: tls ? ['AUTH'] : ['AUTH', 'STARTTLS'],
    hideENHANCEDSTATUSCODES: false,
    size: maxMessageBytes,
    rejectOversized: true,
    maxRecipients,
    maxClients,
    socketTimeout: idleMs,
    connectionLimit: inbound.connectionLimit,
    lifetimeMs,
    maxErrors,
    disableReverseLookup: true,
    onMailFrom: (address, session, callback) =>
      void inbound.begin(address, session).then(
        () => callback(),
        (error) => callback(refusalOf(error)),
      ),
    onRcptTo: (address, session, callback) =>
      void inbound.checkRecipient(address, session).then(
        () => callback(),
        (error) => callback(refusalOf(error)),
      ),
    onData: (stream, session, callback) =>
      void inbound.receive(stream, session).then(
        (id) => callback(null, `2.0.0 Ok: queued as ${id}`),
        (error) => callback(refusalOf(error)),
      ),
  }) satisfies SMTPServerOptions & Strictness
