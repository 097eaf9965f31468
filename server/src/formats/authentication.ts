import { authenticate, type DMARCResult, type DNSResolver, dkimVerify } from 'mailauth'
import { headerEnd } from './header.ts'
import { inboundHeaderBytes, longestSpace } from './trace.ts'

/** What can be known of where a mail comes from: RFC 7208 (SPF), 6376 (DKIM), 9989 (DMARC), 8617 (ARC). */
export interface Authentication {
  spf: { result: string; domain: string | null }
  dkim: { result: string; domain: string | null; selector: string | null }[]
  dmarc: { result: string; domain: string | null; policy: string | null }
  arc: { result: string }
}

export interface MailAuthentication {
  authentication: Authentication
  /** The same as a value of Authentication-Results (RFC 8601). */
  results: string
}

/** Who brought it, and from whom. */
export interface Client {
  ip: string
  helo: string
  /** Of the envelope; empty for the null sender. */
  sender: string
}

// With a length of its own (l=) each takes the time of hashing the whole mail: 0.5 s for 25 MiB.
const maxSignatures = 5
// mailauth takes the square of it (trace.ts), several times for each signature; signers fold with a few.
const maxSpaces = 100

/**
 * Judged by mailauth. Never rejects: what cannot be found out, or not within the time, is `temperror`, and no reason to
 * refuse a mail.
 */
export async function authenticateMail(
  raw: Buffer,
  client: Client,
  { resolver, name, withinMs }: { resolver: DNSResolver; name: string; withinMs: number },
): Promise<MailAuthentication> {
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), withinMs)
  try {
    const judged = authenticate(withoutExcess(raw), {
      ...{ ip: client.ip, helo: client.helo, mta: name, resolver },
      // Without one mailauth would believe a Return-Path in the header.
      sender: client.sender === '' ? `postmaster@${client.helo}` : client.sender,
      disableBimi: true,
    })
    judged.catch(() => {})
    const found = await Promise.race([judged, late.promise])
    return found ? resultOf(found, name) : unknown(name)
  } catch {
    return unknown(name)
  } finally {
    clearTimeout(timer)
  }
}

/** Who has signed a mail, of those whose signature is valid (RFC 6376). */
export interface Signers {
  domains: { name: string; isAligned: boolean }[]
  /** A key could not be looked up, so there may be more. */
  isIncomplete: boolean
}

/**
 * Whose DKIM signatures of a mail are valid. `isAligned`: the domain is that of the one sender in From, or has the same
 * organizational domain. Signatures of a part of the body (`l=`) do not count: anybody can add to such a mail. Never rejects.
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

/**
 * Whether the sender in the envelope is who the mail is from: SPF says so, or the domain has signed it. Who is not known
 * to have sent a mail is not told of its fate: anybody could have named them.
 */
export function confirmsSender({ spf, dkim }: Authentication, sender: string): boolean {
  const domain = sender.slice(sender.lastIndexOf('@') + 1).toLowerCase()
  const isOf = (name: string | null) => name !== null && name.toLowerCase() === domain
  return (
    (spf.result === 'pass' && isOf(spf.domain)) ||
    dkim.some(({ result, domain: name }) => result === 'pass' && isOf(name))
  )
}

/**
 * Whether a mail may be forwarded as what it says it is. `refused`: it fails DMARC (RFC 9989), and the domain in its From asks
 * for such mail to be rejected or quarantined; or it has no From, or one of several domains, of which DMARC says nothing.
 * `unknown`: a DNS look-up failed on which that depends.
 */
export function forwardVerdict({ spf, dkim, dmarc }: Authentication): 'allowed' | 'refused' | 'unknown' {
  if (dmarc.result === 'temperror') return 'unknown'
  if (dmarc.result === 'none' && dmarc.domain === null) return 'refused'
  const isEnforced = dmarc.policy === 'reject' || dmarc.policy === 'quarantine'
  if (dmarc.result !== 'fail' || !isEnforced) return 'allowed'
  const couldPass = spf.result === 'temperror' || dkim.some(({ result }) => result === 'temperror')
  return couldPass ? 'unknown' : 'refused'
}

function resultOf(
  { spf, dkim, dmarc, arc }: Awaited<ReturnType<typeof authenticate>>,
  name: string,
): MailAuthentication {
  const authentication: Authentication = {
    spf: { result: spf ? spf.status.result : 'none', domain: spf ? spf.domain || null : null },
    dkim: dkim.results
      // mailauth has one for a mail without any signature.
      .filter(({ signingDomain }) => signingDomain !== undefined)
      .map(({ status, signingDomain, selector }) => ({
        ...{ result: status.result, domain: signingDomain ?? null, selector: selector ?? null },
      })),
    dmarc: dmarcOf(dmarc),
    arc: { result: arc ? arc.status.result : 'none' },
  }
  return { authentication, results: (arc ? arc.authResults : undefined) ?? `${name}; none` }
}

/** Without a From whose domain it could ask about there is no verdict at all. */
const dmarcOf = (verdict: DMARCResult | false): Authentication['dmarc'] =>
  verdict
    ? { result: verdict.status.result, domain: verdict.domain || null, policy: verdict.policy || null }
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

/** Signatures after the first few, and those that are made to take long, are not looked at, as if they were not there. */
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
