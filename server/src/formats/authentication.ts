import { authenticate, type DMARCResult, type DNSResolver, dkimVerify } from 'mailauth'
import type { Authentication } from './authentication-results.ts'
import { headerEnd } from './header.ts'
import { inboundHeaderBytes, longestSpace } from './trace.ts'

export interface MailAuthentication {
  authentication: Authentication
  /** Formatted as the value of Authentication-Results (RFC 8601). */
  results: string
}

/** The SMTP client and the envelope sender. */
export interface Client {
  ip: string
  helo: string
  /** The envelope sender; empty for the null sender. */
  sender: string
}

// Signatures with different lengths (l=) each require hashing the whole message: 0.5 s for 25 MiB.
const maxSignatures = 5
// mailauth's running time is quadratic in the length of a run of spaces (trace.ts), and each signature
// incurs this cost several times. Signers fold with only a few spaces.
const maxSpaces = 100

/**
 * Authenticates a message with mailauth. Never rejects: a failed or late lookup results in `temperror`, which
 * does not cause mail to be rejected.
 */
export async function authenticateMail(
  raw: Buffer,
  client: Client,
  { resolver, name, withinMs }: { resolver: DNSResolver; name: string; withinMs: number },
): Promise<MailAuthentication> {
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), withinMs)
  try {
    const result = authenticate(withoutExcess(raw), {
      ...{ ip: client.ip, helo: client.helo, mta: name, resolver },
      // Without a sender, mailauth would use a Return-Path in the header.
      sender: client.sender === '' ? `postmaster@${client.helo}` : client.sender,
      disableBimi: true,
    })
    result.catch(() => {})
    const found = await Promise.race([result, late.promise])
    return found ? resultOf(found, name) : unknown(name)
  } catch {
    return unknown(name)
  } finally {
    clearTimeout(timer)
  }
}

/** The domains with a valid DKIM signature (RFC 6376). */
export interface Signers {
  domains: { name: string; isAligned: boolean }[]
  /** A key lookup failed, so there may be more domains. */
  isIncomplete: boolean
}

/**
 * Verifies a message's DKIM signatures. `isAligned`: the domain equals the domain of the only From address,
 * or has the same organizational domain. Signatures over part of the body (`l=`) are ignored, because content
 * can be appended. Never rejects.
 */
export async function signersOf(
  raw: Buffer,
  { resolver, withinMs }: { resolver: DNSResolver; withinMs: number },
): Promise<Signers> {
  const incomplete: Signers = { domains: [], isIncomplete: true }
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), withinMs)
  try {
    const verified = dkimVerify(withoutExcess(raw), { resolver })
    verified.catch(() => {})
    const found = await Promise.race([verified, late.promise])
    if (!found) return incomplete
    const hasOneSender = found.fromFields === 1 && found.headerFrom.length === 1
    return {
      domains: found.results.flatMap(({ status, signingDomain, canonBodyLengthLimited }) =>
        status.result === 'pass' && signingDomain !== undefined && !canonBodyLengthLimited
          ? [{ name: signingDomain.toLowerCase(), isAligned: hasOneSender && Boolean(status.aligned) }]
          : [],
      ),
      isIncomplete: found.results.some(({ status }) => status.result === 'temperror'),
    }
  } catch {
    return incomplete
  } finally {
    clearTimeout(timer)
  }
}

function resultOf(
  { spf, dkim, dmarc, arc }: Awaited<ReturnType<typeof authenticate>>,
  name: string,
): MailAuthentication {
  const authentication: Authentication = {
    spf: { result: spf ? spf.status.result : 'none', domain: spf ? spf.domain || null : null },
    dkim: dkim.results
      // mailauth also returns an entry for a message without any signature.
      .filter(({ signingDomain }) => signingDomain !== undefined)
      .map(({ status, signingDomain, selector }) => ({
        ...{ result: status.result, domain: signingDomain ?? null, selector: selector ?? null },
      })),
    dmarc: dmarcOf(dmarc),
    arc: { result: arc ? arc.status.result : 'none' },
  }
  return { authentication, results: (arc ? arc.authResults : undefined) ?? `${name}; none` }
}

/** Without a domain in From there is no DMARC result. */
const dmarcOf = (dmarc: DMARCResult | false): Authentication['dmarc'] =>
  dmarc
    ? { result: dmarc.status.result, domain: dmarc.domain || null, policy: dmarc.policy || null }
    : { result: 'none', domain: null, policy: null }

const unknown = (name: string): MailAuthentication => ({
  authentication: {
    spf: { result: 'temperror', domain: null },
    dkim: [],
    dmarc: { result: 'temperror', domain: null, policy: null },
    arc: { result: 'temperror' },
  },
  results: `${name}; spf=temperror; dmarc=temperror`,
})

/** Before verification, removes excess signatures and those crafted to take a long time. */
function withoutExcess(raw: Buffer): Buffer {
  const end = headerEnd(raw, inboundHeaderBytes)
  const fields = raw.toString('latin1', 0, end).split(/\r\n(?![ \t])/)
  let count = 0
  const kept = fields.filter((field) => {
    if (isSignature.test(field) && longestSpace(field) > maxSpaces) return false
    return !/^dkim-signature[ \t]*:/i.test(field) || ++count <= maxSignatures
  })
  if (kept.length === fields.length) return raw
  return Buffer.concat([Buffer.from(kept.join('\r\n'), 'latin1'), raw.subarray(end)])
}

const isSignature = /^(?:dkim-signature|arc-[a-z-]+)[ \t]*:/i
