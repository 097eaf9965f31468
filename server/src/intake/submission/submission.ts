import type { SMTPServerOptions } from 'smtp-server'
import { maxMessageBytes, maxRecipients } from '../../core/mail/messages/draft.ts'
import type { Certificate } from '../smtp/certificate.ts'
import { type Listener, listen } from '../smtp/listener.ts'
import { refusalOf } from '../smtp/replies.ts'
import { type Strictness, StrictSmtpServer } from '../smtp/strict-server.ts'
import { SubmissionSession, type SubmissionSessionDeps } from './submission-session.ts'

/**
 * Where customers bring mail by SMTP (RFC 6409): with STARTTLS on one port, and with TLS from the first octet on
 * another (RFC 8314). The password is a project's API key. What is brought goes through the same acceptance as what
 * comes by HTTP, and 250 is said when that has committed.
 *
 * Not offered: CHUNKING, so that there is one end of data; DSN, because what becomes of a mail is told by events. Its
 * parameters are taken and ignored.
 */
export interface SubmissionDeps extends SubmissionSessionDeps {
  host: string
  /** Undefined: not there. 0: any. */
  ports: { startTls: number | undefined; tls: number | undefined }
  tls: Certificate
}

const maxClients = 500
// RFC 5321 §4.5.3.2.7.
const idleMs = 5 * 60_000
// 25 MiB in it are 15 KB a second.
const lifetimeMs = 30 * 60_000
// More than a mail with too many recipients is refused.
const maxErrors = 100
/** Old jokes of the library. */
const never = ['WIZ', 'SHELL', 'KILL', 'XCLIENT', 'XFORWARD']

/** One for each port. */
export async function startSubmission(deps: SubmissionDeps): Promise<Listener[]> {
  const desk = new SubmissionSession(deps)
  const listeners: Listener[] = []
  for (const [way, port] of Object.entries(deps.ports)) {
    if (port === undefined) continue
    const server = new StrictSmtpServer({
      ...optionsOf(deps, desk),
      ...(way === 'tls'
        ? { secure: true, listener: 'submissions' }
        : { secure: false, listener: 'submission' }),
    })
    listeners.push(await listen(server, { ...deps, port }))
  }
  return listeners
}

const optionsOf = ({ name, tls }: SubmissionDeps, desk: SubmissionSession) =>
  ({
    name,
    ...tls,
    minVersion: 'TLSv1.2',
    authMethods: ['PLAIN', 'LOGIN'],
    disabledCommands: never,
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
    onConnect(session, callback) {
      // In the clear nobody is asked for a password, not even by mistake (RFC 4954 §4).
      session.disabledCommands = session.secure ? never : [...never, 'AUTH']
      callback()
    },
    onSecure(_socket, session, callback) {
      session.disabledCommands = never
      callback()
    },
    onAuth: ({ password }, session, callback) =>
      void desk.signIn(password ?? '', session).then(
        (user) => callback(null, { user }),
        (error) => callback(refusalOf(error)),
      ),
    onMailFrom: (address, session, callback) =>
      void desk.begin(address, session).then(
        () => callback(),
        (error) => callback(refusalOf(error)),
      ),
    onRcptTo: (address, session, callback) => callback(desk.recipientFault(address, session)),
    onData: (stream, session, callback) =>
      void desk.take(stream, session).then(
        (id) => callback(null, `2.0.0 Ok: queued as ${id}`),
        (error) => callback(refusalOf(error)),
      ),
  }) satisfies SMTPServerOptions & Omit<Strictness, 'listener'>
