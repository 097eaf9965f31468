import { Value } from 'typebox/value'
import { type Arrival, readSubmitted } from '../../../formats/submitted.ts'
import { PosternError } from '../../../platform/errors.ts'
import { domainOf, maxMessageBytes, type ReadDraft, type Recipient } from './draft.ts'
import { messageFields } from './wire.ts'

/**
 * Parses a message submitted over SMTP into a draft. The envelope determines the recipients; the header
 * determines only whether a recipient is `to`, `cc` or `bcc`. `recipients` contains each address once.
 */
export function readSubmittedDraft(raw: Buffer, recipients: readonly string[], arrival: Arrival): ReadDraft {
  const read = readSubmitted(raw, arrival)
  if ('fault' in read)
    return { fault: refuse(read.fault), senderDomain: read.from && domainOf(read.from.address) }
  const { from, subject, tags, mime } = read
  const senderDomain = domainOf(from.address)
  const metadata = Object.fromEntries(read.metadata)
  const fault = labelsFault(tags, metadata)
  if (fault) return { fault, senderDomain }
  if (mime.length > maxMessageBytes) {
    const text = `The message is larger than ${maxMessageBytes / 1024 / 1024} MiB. Send a link instead.`
    return { fault: new PosternError('body_too_large', text), senderDomain }
  }
  const kindOf = (address: string): Recipient['kind'] => {
    const key = address.toLowerCase()
    if (read.to.has(key)) return 'to'
    return read.cc.has(key) ? 'cc' : 'bcc'
  }
  return {
    senderDomain,
    draft: {
      from: from.address,
      subject,
      format: 'mime',
      content: mime,
      recipients: recipients.map((address) => ({ kind: kindOf(address), address })),
      tags,
      metadata,
      sendAt: null,
      sizeBytes: mime.length,
    },
  }
}

function labelsFault(tags: string[], metadata: Record<string, string>): PosternError | undefined {
  if (!Value.Check(messageFields.tags, tags)) {
    return refuse('X-Postern-Tag accepts up to 10 distinct tags of 1 to 64 letters, digits, "_" and "-".')
  }
  if (!Value.Check(messageFields.metadata, metadata)) {
    return refuse(
      'X-Postern-Metadata accepts up to 20 name=value pairs: names of 1 to 64 characters, values of at most 500.',
    )
  }
  return undefined
}

const refuse = (message: string): PosternError => new PosternError('validation_failed', message)
