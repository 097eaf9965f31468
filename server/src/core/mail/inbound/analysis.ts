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
import { shownFields, type TraceFault, traceFault } from '../../../formats/trace.ts'
import { createResolver } from '../../../platform/net/dns.ts'
import { type Answered, serveJobs } from '../../../platform/scheduling/thread-pool.ts'
import { mailauthResolver } from './mailauth-resolver.ts'
import { type Linking, receivedJson } from './received-event.ts'

/** What is done in the threads of analysis-threads.ts. Everything that grows with what a stranger sends is done here. */
export interface AnalysisTasks {
  /** Evaluates SPF, DKIM, DMARC and ARC, and seals what is forwarded. Waits for the DNS. */
  authenticate: {
    raw: Uint8Array
    client: Client
    /** As which we authenticate. */
    name: string
    /** That it came for, in lower case. */
    recipients: string[]
    /** Of each domain that sends it on: its key, and the fields that are added. */
    forwards: { key: DkimKey; fields: string }[]
  }
  /** Parses a mail for endpoints. */
  parse: { raw: Uint8Array; judgement: MailAuthentication; links: Linking; readers: number }
  /** One attachment of a mail. */
  extract: { raw: Uint8Array; attachment: number }
  /** Who has signed a mail to an address for complaints. Waits for the DNS. */
  verify: { raw: Uint8Array }
  /** A mail to a return path, or to an address for complaints. */
  report: { raw: Uint8Array }
}

export type AnalysisTask = {
  [Work in keyof AnalysisTasks]: { work: Work; of: AnalysisTasks[Work] }
}[keyof AnalysisTasks]

export type Judged =
  | { fault: TraceFault }
  | (MailAuthentication & {
      /** In the order of `forwards`: as it is sent on. */
      forwarded: Uint8Array[]
      /** What the header says, for showing. */
      from: string
      subject: string
    })

export interface ThreadData {
  servers: string[]
  judgedWithinMs: number
}

const lookup = { timeoutMs: 4_000, tries: 2 }

/** In the thread. */
export function serveAnalysis({ servers, judgedWithinMs: withinMs }: ThreadData): void {
  const resolver = mailauthResolver(createResolver({ servers, ...lookup }))
  serveJobs<AnalysisTask>(async ({ work, of }, resume) => {
    const raw = ownBuffer(of.raw)
    const waiting: typeof resolver = (...asked) => resolver(...asked).finally(resume)
    switch (work) {
      case 'authenticate':
        return judged(raw, of, (client) =>
          authenticateMail(raw, client, { resolver: waiting, name: of.name, withinMs }),
        )
      case 'parse': {
        // What is nested too deeply is as good as not read.
        const parsed = await parseMail(raw).catch(() => null)
        const { authentication } = of.judgement
        return bytes(Buffer.from(receivedJson({ authentication, parsed }, of.links, of.readers)))
      }
      case 'extract':
        return bytes(await attachmentIn(raw, of.attachment))
      case 'verify': {
        const nobody: Signers = { domains: [], isIncomplete: false }
        const isSigned = traceFault(raw, []) === undefined && hasSignature(raw)
        return { answer: isSigned ? await signersOf(raw, { resolver: waiting, withinMs }) : nobody }
      }
      case 'report':
        return { answer: await readIncomingReport(raw) }
    }
  })
}

async function judged(
  raw: Buffer,
  { client, recipients, forwards }: AnalysisTasks['authenticate'],
  judgeIt: (client: Client) => Promise<MailAuthentication>,
): Promise<Answered> {
  const fault = traceFault(raw, recipients)
  if (fault) return { answer: { fault } satisfies Judged }
  const judgement = await judgeIt(client)
  const forwarded = await Promise.all(
    forwards.map(async ({ key, fields }) =>
      alone(await sealMime(Buffer.concat([Buffer.from(fields), raw]), key, judgement)),
    ),
  )
  const answer: Judged = { ...judgement, forwarded, ...shownFields(raw) }
  return { answer, transfer: forwarded.map(({ buffer }) => buffer) }
}

const hasSignature = (raw: Buffer): boolean =>
  /^dkim-signature[ \t]*:/im.test(raw.toString('latin1', 0, headerBytes))
const headerBytes = 256 * 1024

function bytes(content: Uint8Array | undefined): Answered {
  if (!content) return { answer: undefined }
  const own = alone(content)
  return { answer: own, transfer: [own.buffer] }
}

/** Only what is alone in its memory can be given away; small buffers of Node's share theirs. */
const alone = (content: Uint8Array): Uint8Array<ArrayBuffer> =>
  content.byteLength === content.buffer.byteLength && content.buffer instanceof ArrayBuffer
    ? (content as Uint8Array<ArrayBuffer>)
    : new Uint8Array(content)

/** Mail that comes in is in memory that threads share; parsers get a copy, because some take no shared memory. */
const ownBuffer = (raw: Uint8Array): Buffer =>
  raw.buffer instanceof SharedArrayBuffer
    ? Buffer.from(raw)
    : Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
