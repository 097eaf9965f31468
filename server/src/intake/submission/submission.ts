import type { SMTPServerOptions } from 'smtp-server'
import { maxMessageBytes, maxRecipients } from '../../core/mail/messages/draft.ts'
import type { Certificate } from '../smtp/certificate.ts'
import { type Listener, listen } from '../smtp/listener.ts'
import { refusalOf } from '../smtp/replies.ts'
import { type Strictness, StrictSmtpServer } from '../smtp/strict-server.ts'
import { SubmissionSession, type SubmissionSessionDeps } from './submission-session.ts'

/**
 * SMTP submission for customers (RFC 6409): with STARTTLS on one port, and with implicit TLS on another (RFC 8314). The
 * password is an API key of the project. Submitted mail goes through the same acceptance as mail by HTTP, and 250 is sent
 * after that has committed.
 *
 * Not offered: CHUNKING, so that DATA is the only way to send mail data; DSN, because events report what happens to a mail.
 * Its parameters are accepted and ignored.
 */
export interface SubmissionDeps extends SubmissionSessionDeps {
  host: string
  /** Undefined: not opened. 0: any free port. */
  ports: { startTls: number | undefined; tls: number | undefined }
  tls: Certificate
}

const maxClients = 500
// RFC 5321 §4.5.3.2.7.
const idleMs = 5 * 60_000
// 25 MiB in that time is 15 KB a second.
const lifetimeMs = 30 * 60_000
// More than one mail with too many recipients causes.
const maxErrors = 100
/** Joke and proxy commands of the library. */
const disabledCommands = ['WIZ', 'SHELL', 'KILL', 'XCLIENT', 'XFORWARD']

/** One listener for each port. */
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
      // AUTH is not offered in cleartext, so no client sends its password that way (RFC 4954 §4).
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
