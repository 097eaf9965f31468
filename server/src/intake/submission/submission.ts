import type { SMTPServerOptions } from 'smtp-server'
import { maxMessageBytes } from '../../core/mail/messages/draft.ts'
import { maxRecipients } from '../../core/mail/messages/wire.ts'
import type { Certificate } from '../smtp/certificate.ts'
import { type Listener, listen } from '../smtp/listener.ts'
import { refusalOf } from '../smtp/replies.ts'
import { type Strictness, StrictSmtpServer } from '../smtp/strict-server.ts'
import { SubmissionSession, type SubmissionSessionDeps } from './submission-session.ts'

/**
 * SMTP submission for customers (RFC 6409): STARTTLS on one port, implicit TLS on another (RFC 8314). The
 * password is one of the project's API keys. Submitted mail is accepted in the same way as mail sent over
 * HTTP, and 250 is sent after the commit.
 *
 * CHUNKING is not offered: DATA is the only command for mail data. DSN is not offered either, because events
 * report deliveries; DSN parameters are accepted and ignored.
 */
export interface SubmissionDeps extends SubmissionSessionDeps {
  host: string
  /** Undefined: the port is not opened. 0: any free port. */
  ports: { startTls: number | undefined; tls: number | undefined }
  tls: Certificate
}

const maxClients = 500
// RFC 5321 §4.5.3.2.7.
const idleMs = 5 * 60_000
// Sending 25 MiB in this time requires 15 KB per second.
const lifetimeMs = 30 * 60_000
// More errors than a single message with too many recipients causes.
const maxErrors = 100
/** The library's joke and proxy commands. */
const disabledCommands = ['WIZ', 'SHELL', 'KILL', 'XCLIENT', 'XFORWARD']

/** One listener per port. */
export async function startSubmission(deps: SubmissionDeps): Promise<Listener[]> {
  const submission = new SubmissionSession(deps)
  const listeners: Listener[] = []
  for (const [mode, port] of Object.entries(deps.ports)) {
    if (port === undefined) continue
    const server = new StrictSmtpServer({
      ...optionsOf(deps, submission),
      ...(mode === 'tls'
        ? { secure: true, listener: 'submissions' }
        : { secure: false, listener: 'submission' }),
    })
    listeners.push(await listen(server, { ...deps, port }))
  }
  return listeners
}

const optionsOf = ({ name, tls }: SubmissionDeps, submission: SubmissionSession) =>
  ({
    name,
    ...tls,
    minVersion: 'TLSv1.2',
    authMethods: ['PLAIN', 'LOGIN'],
    disabledCommands,
    hideENHANCEDSTATUSCODES: false,
    size: maxMessageBytes,
    rejectOversized: true,
    maxRecipients,
    maxClients,
    socketTimeout: idleMs,
    connectionLimit: submission.connectionLimit,
    lifetimeMs,
    maxErrors,
    disableReverseLookup: true,
    onConnect(session, callback) {
      // AUTH is not offered in cleartext, so no client sends its password unencrypted (RFC 4954 §4).
      session.disabledCommands = session.secure ? disabledCommands : [...disabledCommands, 'AUTH']
      callback()
    },
    onSecure(_socket, session, callback) {
      session.disabledCommands = disabledCommands
      callback()
    },
    onAuth: ({ password }, session, callback) =>
      void submission.authenticate(password ?? '', session).then(
        (user) => callback(null, { user }),
        (error) => callback(refusalOf(error)),
      ),
    onMailFrom: (address, session, callback) =>
      void submission.begin(address, session).then(
        () => callback(),
        (error) => callback(refusalOf(error)),
      ),
    onRcptTo: (address, session, callback) => callback(submission.checkRecipient(address, session)),
    onData: (stream, session, callback) =>
      void submission.receive(stream, session).then(
        (id) => callback(null, `2.0.0 Ok: queued as ${id}`),
        (error) => callback(refusalOf(error)),
      ),
  }) satisfies SMTPServerOptions & Omit<Strictness, 'listener'>
