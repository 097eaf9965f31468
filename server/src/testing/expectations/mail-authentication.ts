import { Resolver } from 'node:dns/promises'
import { authenticate, type DMARCResult } from 'mailauth'

/** A receiver's DKIM, SPF and DMARC results for a message. */
export interface Authentication {
  dkim: { result: string; domain: string | undefined; selector: string | undefined }[]
  spf: { result: string; domain: string | undefined }
  dmarc: {
    result: string
    policy: string | undefined
    /** For DKIM and for SPF, the domain that is aligned with From; undefined if there is none. */
    alignedBy: { dkim: string | undefined; spf: string | undefined }
  }
}

interface Mail {
  raw: Buffer
  /** The envelope sender. */
  from: string
  /** The address of the SMTP client. */
  ip: string
  helo: string
}

/** Authenticates a message with mailauth in its strictest mode, using only this DNS server. */
export async function authenticationOf(mail: Mail, dnsServer: string): Promise<Authentication> {
  const dns = new Resolver({ timeout: 2000, tries: 2 })
  dns.setServers([dnsServer])
  const { dkim, spf, dmarc } = await authenticate(mail.raw, {
    sender: mail.from,
    ip: mail.ip,
    helo: mail.helo,
    mta: 'receiver.test',
    minBitLength: 2048,
    strict: true,
    disableArc: true,
    disableBimi: true,
    resolver: async (name, type) => (await dns.resolve(name, type)) as string[] | string[][],
  })
  return {
    dkim: dkim.results.map(({ status, signingDomain, selector }) => ({
      result: status.result,
      domain: signingDomain,
      selector,
    })),
    spf: { result: spf ? spf.status.result : 'none', domain: spf ? spf.domain : undefined },
    dmarc: dmarcOf(dmarc),
  }
}

/** mailauth returns no DMARC result for a message without a domain in From. */
function dmarcOf(verdict: DMARCResult | false): Authentication['dmarc'] {
  if (!verdict) return { result: 'none', policy: undefined, alignedBy: { dkim: undefined, spf: undefined } }
  const { status, policy, alignment } = verdict
  return {
    result: status.result,
    policy,
    alignedBy: { dkim: alignment.dkim.result, spf: alignment.spf.result },
  }
}

/** A receiver's result for the ARC chain: its validity, its last sealer, and the SPF result in the seal. */
export async function arcOf(raw: Buffer, dnsServer: string) {
  const dns = new Resolver({ timeout: 2000, tries: 2 })
  dns.setServers([dnsServer])
  const { arc } = await authenticate(raw, {
    ...{ sender: '', ip: '192.0.2.1', helo: 'mta.example', mta: 'receiver.test', strict: true },
    disableBimi: true,
    resolver: async (name, type) => (await dns.resolve(name, type)) as string[] | string[][],
  })
  if (!arc) return { result: 'none', domain: undefined, spf: undefined }
  const seen = arc.authenticationResults as { spf?: { result: string } } | undefined
  return {
    result: arc.status.result,
    domain: arc.signature ? arc.signature.signingDomain : undefined,
    spf: seen?.spf?.result,
  }
}
