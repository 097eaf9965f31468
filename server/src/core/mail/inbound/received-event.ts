// The data of `inbound.received` events: everything that fits, and links to the rest.

import type { Authentication } from '../../../formats/authentication-results.ts'
import type { ParsedMail } from '../../../formats/parse-mail.ts'
import { type LinkKeys, makeLink } from './link.ts'

export interface Received {
  authentication: Authentication
  /** Null if the message could not be parsed. */
  parsed: ParsedMail | null
}

/** The data needed to create links to a message. It is passed between threads. */
export interface Linking {
  shard: number
  bodyId: string
  keys: LinkKeys
  /** Public URL of `postern api`. */
  publicUrl: string
  now: Date
}

const maxBytes = 2 * 1024 * 1024
/** The limit for all of a message's events together, because one endpoint may receive all of them. */
const maxTotalBytes = 8 * 1024 * 1024

/**
 * The part of the `inbound.received` event data that all of a message's events share, as JSON. It is created
 * and stored once for all recipients. If it is too large, parts are omitted in this order: the contents of
 * attachments (their links remain), the HTML, the text, the header. The more recipients there are, the lower
 * the limit for each.
 */
export function receivedJson(received: Received, links: Linking, recipients: number): string {
  const limit = Math.min(maxBytes, maxTotalBytes / recipients)
  const steps: Partial<ParsedMail>[] = [
    {},
    { html: null, html_truncated: true },
    { text: null, text_truncated: true },
    { headers: [] },
    { to: [], attachments: [] },
  ]
  const parsed = received.parsed ?? unparsed
  let [cut, isInline]: [ParsedMail, boolean] = [parsed, true]
  let json = jsonOf(received, cut, isInline, links)
  for (const step of [null, ...steps]) {
    if (Buffer.byteLength(json) <= limit) break
    if (step === null) isInline = false
    else cut = { ...cut, ...truncated(step, parsed) }
    json = jsonOf(received, cut, isInline, links)
  }
  return json
}

/** A part that does not exist is not marked as truncated. */
function truncated(step: Partial<ParsedMail>, { html, text }: ParsedMail): Partial<ParsedMail> {
  if ('html' in step && html === null) return {}
  if ('text' in step && text === null) return {}
  return step
}

const unparsed: ParsedMail = {
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
