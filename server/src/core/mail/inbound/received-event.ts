import type { Authentication } from '../../../formats/authentication.ts'
import type { ParsedMail } from '../../../formats/parse-mail.ts'
import { type LinkKeys, makeLink } from './link.ts'

/** What endpoints are told of a mail: everything that fits, and links to the rest. */
export interface Received {
  authentication: Authentication
  /** Null where it could not be read. */
  parsed: ParsedMail | null
}

/** What links to a mail are made of. It crosses between threads. */
export interface Linking {
  shard: number
  bodyId: string
  keys: LinkKeys
  /** Where `postern api` is reached. */
  publicUrl: string
  now: Date
}

const maxBytes = 2 * 1024 * 1024
/** Of all the events of one mail together: an endpoint receives each of them. */
const maxBytesTogether = 8 * 1024 * 1024

/**
 * The part of the `data` of `inbound.received` that all events of a mail share, as JSON. It is made and stored once, however
 * many addresses the mail came to. What is left out where there is not room for all of it: the contents of attachments
 * (their links are there), then the HTML, the text, and the header. Of a mail to many addresses, each has less room.
 */
export function receivedJson(received: Received, links: Linking, mails: number): string {
  const room = Math.min(maxBytes, maxBytesTogether / mails)
  const steps: Partial<ParsedMail>[] = [
    {},
    { html: null, html_truncated: true },
    { text: null, text_truncated: true },
    { headers: [] },
    { to: [], attachments: [] },
  ]
  const parsed = received.parsed ?? unread
  let [cut, isInline]: [ParsedMail, boolean] = [parsed, true]
  let json = jsonOf(received, cut, isInline, links)
  for (const step of [null, ...steps]) {
    if (Buffer.byteLength(json) <= room) break
    if (step === null) isInline = false
    else cut = { ...cut, ...withheld(step, parsed) }
    json = jsonOf(received, cut, isInline, links)
  }
  return json
}

/** What was not there is not cut. */
function withheld(step: Partial<ParsedMail>, { html, text }: ParsedMail): Partial<ParsedMail> {
  if ('html' in step && html === null) return {}
  if ('text' in step && text === null) return {}
  return step
}

const unread: ParsedMail = {
  ...{ from: null, to: [], subject: null, date: null, message_id: null, headers: [] },
  ...{ text: null, text_truncated: false, html: null, html_truncated: false, attachments: [] },
}

function jsonOf(
  { authentication, parsed }: Received,
  { attachments, ...mail }: ParsedMail,
  isInline: boolean,
  { shard, bodyId, keys, publicUrl, now }: Linking,
): string {
  const linkTo = (attachment: number | null) =>
    new URL(`/v1/inbound/${makeLink(keys, { shard, bodyId, attachment }, now)}`, publicUrl).href
  return JSON.stringify({
    is_parsed: parsed !== null,
    ...mail,
    attachments: attachments.map(({ content, ...attachment }, no) => {
      const inline = isInline && content !== null ? Buffer.from(content).toString('base64') : null
      return { ...attachment, content: inline, url: inline === null ? linkTo(no) : null }
    }),
    authentication,
    raw_url: linkTo(null),
  })
}
