import { Resolver } from 'node:dns/promises'
import { authenticate, type DMARCResult } from 'mailauth'

/** What a receiver makes of a mail: who signed it, and whether DKIM, SPF and DMARC are content with it. */
export interface Authentication {
  dkim: { result: string; domain: string | undefined; selector: string | undefined }[]
  spf: { result: string; domain: string | undefined }
  dmarc: {
    result: string
    policy: string | undefined
    /** The domain that is in line with that of From, by each way; undefined where none is. */
    alignedBy: { dkim: string | undefined; spf: string | undefined }
  }
}

interface Mail {
  raw: Buffer
  /** Of the envelope. */
  from: string
  /** Of whoever brought it. */
  ip: string
  helo: string
}

/** Judged by mailauth with every strictness it has, on what this DNS server says and no other. */
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

/** Without a From whose domain it could ask about there is no verdict at all. */
function dmarcOf(verdict: DMARCResult | false): Authentication['dmarc'] {
  if (!verdict) return { result: 'none', policy: undefined, alignedBy: { dkim: undefined, spf: undefined } }
  const { status, policy, alignment } = verdict
  return {
    result: status.result,
    policy,
    alignedBy: { dkim: alignment.dkim.result, spf: alignment.spf.result },
  }
}

/** What a receiver makes of the ARC chain of a mail: whether it holds, who sealed it last, and what they saw. */
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
