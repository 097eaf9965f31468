import {
  authenticateMail,
  type Client,
  type MailAuthentication,
  type Signers,
  signersOf,
} from '../../../formats/authentication.ts'
import { readIncomingReport } from '../../../formats/incoming-report.ts'
import { attachmentIn, parseMail } from '../../../formats/parse-mail.ts'
import { sealMime } from '../../../formats/seal.ts'
import type { DkimKey } from '../../../formats/sign.ts'
import { displayFields, type TraceFault, traceFault } from '../../../formats/trace.ts'
import { createResolver } from '../../../platform/net/dns.ts'
import { type Answered, serveJobs } from '../../../platform/scheduling/thread-pool.ts'
import { mailauthResolver } from './mailauth-resolver.ts'
import { type Linking, receivedJson } from './received-event.ts'

/**
 * The tasks performed by the threads in analysis-threads.ts: all work whose cost grows with untrusted input.
 */
export interface AnalysisTasks {
  /** Evaluates SPF, DKIM, DMARC and ARC, and adds ARC seals to forwarded copies. Waits for DNS. */
  authenticate: {
    raw: Uint8Array
    client: Client
    /** The authserv-id. */
    name: string
    /** Envelope recipients, in lower case. */
    recipients: string[]
    /** For each domain that forwards the message: its key and the fields to add. */
    forwards: { key: DkimKey; fields: string }[]
  }
  /** Parses a message for endpoints. */
  parse: { raw: Uint8Array; authenticated: MailAuthentication; links: Linking; readers: number }
  /** Returns one attachment of a message. */
  extract: { raw: Uint8Array; attachment: number }
  /** Verifies the DKIM signatures of a message sent to a complaint address. Waits for DNS. */
  verify: { raw: Uint8Array }
  /** Parses a message sent to a return path or to a complaint address. */
  report: { raw: Uint8Array }
}

export type AnalysisTask = {
  [Work in keyof AnalysisTasks]: { work: Work; of: AnalysisTasks[Work] }
}[keyof AnalysisTasks]

export type AuthenticatedMail =
  | { fault: TraceFault }
  | (MailAuthentication & {
      /** The copies to forward, in the order of `forwards`. */
      forwarded: Uint8Array[]
      /** Header values for display. */
      from: string
      subject: string
    })

export interface ThreadData {
  servers: string[]
  authTimeoutMs: number
}

const lookup = { timeoutMs: 4_000, tries: 2 }

/** Runs in the worker thread. */
export function serveAnalysis({ servers, authTimeoutMs: withinMs }: ThreadData): void {
  const resolver = mailauthResolver(createResolver({ servers, ...lookup }))
  serveJobs<AnalysisTask>(async ({ work, of }, resume) => {
    const raw = ownBuffer(of.raw)
    const resolve: typeof resolver = (...query) => resolver(...query).finally(resume)
    switch (work) {
      case 'authenticate':
        return authenticated(raw, of, (client) =>
          authenticateMail(raw, client, { resolver: resolve, name: of.name, withinMs }),
        )
      case 'parse': {
        // A message that is nested too deeply is treated as unparsed.
        const parsed = await parseMail(raw).catch(() => null)
        const { authentication } = of.authenticated
        return bytes(Buffer.from(receivedJson({ authentication, parsed }, of.links, of.readers)))
      }
      case 'extract':
        return bytes(await attachmentIn(raw, of.attachment))
      case 'verify': {
        const none: Signers = { domains: [], isIncomplete: false }
        const isSigned = traceFault(raw, []) === undefined && hasSignature(raw)
        return { answer: isSigned ? await signersOf(raw, { resolver: resolve, withinMs }) : none }
      }
      case 'report':
        return { answer: await readIncomingReport(raw) }
    }
  })
}

async function authenticated(
  raw: Buffer,
  { client, recipients, forwards }: AnalysisTasks['authenticate'],
  authenticate: (client: Client) => Promise<MailAuthentication>,
): Promise<Answered> {
  const fault = traceFault(raw, recipients)
  if (fault) return { answer: { fault } satisfies AuthenticatedMail }
  const authentication = await authenticate(client)
  const forwarded = await Promise.all(
    forwards.map(async ({ key, fields }) =>
      unshared(await sealMime(Buffer.concat([Buffer.from(fields), raw]), key, authentication)),
    ),
  )
  const answer: AuthenticatedMail = { ...authentication, forwarded, ...displayFields(raw) }
  return { answer, transfer: forwarded.map(({ buffer }) => buffer) }
}

const hasSignature = (raw: Buffer): boolean =>
  /^dkim-signature[ \t]*:/im.test(raw.toString('latin1', 0, headerBytes))
const headerBytes = 256 * 1024

function bytes(content: Uint8Array | undefined): Answered {
  if (!content) return { answer: undefined }
  const own = unshared(content)
  return { answer: own, transfer: [own.buffer] }
}

/** Only an unshared ArrayBuffer can be transferred; small Node.js buffers share one. */
const unshared = (content: Uint8Array): Uint8Array<ArrayBuffer> =>
  content.byteLength === content.buffer.byteLength && content.buffer instanceof ArrayBuffer
    ? (content as Uint8Array<ArrayBuffer>)
    : new Uint8Array(content)

/** Inbound mail is in shared memory. Parsers get a copy, because some do not accept shared memory. */
const ownBuffer = (raw: Uint8Array): Buffer =>
  raw.buffer instanceof SharedArrayBuffer
    ? Buffer.from(raw)
    : Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
