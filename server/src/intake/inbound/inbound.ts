import type { SMTPServerOptions } from 'smtp-server'
import { maxMessageBytes, maxRecipients } from '../../core/mail/messages/draft.ts'
import type { Certificate } from '../smtp/certificate.ts'
import { type Listener, listen } from '../smtp/listener.ts'
import { refusalOf } from '../smtp/replies.ts'
import { type Strictness, StrictSmtpServer } from '../smtp/strict-server.ts'
import { InboundSession, type InboundSessionDeps } from './inbound-session.ts'

/**
 * The MX of customers' domains: takes mail in for the addresses that their routes take, and for no others. 250 is said
 * when it has committed, so that whatever goes wrong before, whoever brought the mail still has it, and comes again.
 *
 * Not offered: AUTH, because this is no place to send from; CHUNKING, so that there is one end of data.
 */
export interface InboundDeps extends InboundSessionDeps {
  host: string
  port: number
  /** STARTTLS is offered with it. */
  tls: Certificate | undefined
}

const maxClients = 500
// RFC 5321 §4.5.3.2.7.
const idleMs = 5 * 60_000
const lifetimeMs = 30 * 60_000
// More than a mail with too many recipients is refused; those who guess are counted by network.
const maxErrors = 200

export function startInbound(deps: InboundDeps): Promise<Listener> {
  const desk = new InboundSession(deps)
  return listen(new StrictSmtpServer(optionsOf(deps, desk)), deps)
}

const optionsOf = ({ name, tls }: InboundDeps, desk: InboundSession) =>
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
    crowd: desk.crowd,
    lifetimeMs,
    maxErrors,
    disableReverseLookup: true,
    onMailFrom: (address, session, callback) =>
      void desk.begin(address, session).then(
        () => callback(),
        (error) => callback(refusalOf(error)),
      ),
    onRcptTo: (address, session, callback) =>
      void desk.expect(address, session).then(
        () => callback(),
        (error) => callback(refusalOf(error)),
      ),
    onData: (stream, session, callback) =>
      void desk.take(stream, session).then(
        (id) => callback(null, `2.0.0 Ok: taken as ${id}`),
        (error) => callback(refusalOf(error)),
      ),
  }) satisfies SMTPServerOptions & Strictness
