import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { spf } from 'mailauth'
import { mailauthResolver } from '../core/mail/inbound/mailauth-resolver.ts'
import type { Resolver } from '../platform/net/dns.ts'
import { smtpAddressOf } from '../providers/smtp-transport.ts'
import { type Check, type DoctorContext, type Finding, failure, ok, unlessFound, warning } from './check.ts'

/**
 * Checks the addresses that mail is sent from: the return-path host's SPF record, which applies to every customer, and
 * the addresses' reverse DNS. Only the MTA knows which address it sends from, so the check uses the addresses listed in
 * the SPF record and the public addresses in POSTERN_MTA_HOSTS.
 */
export const senderCheck: Check = {
  name: 'senders',
  async run(context) {
    const { dns, settings } = context
    const { returnPathHost: host, mtaHosts } = settings
    if (mtaHosts.length === 0) return [ok('No MTA is configured (POSTERN_MTA_HOSTS is empty).')]
    if (!host.includes('.')) {
      return [
        ok(
          `${host} is a local hostname, suitable only for testing on a single machine. SPF and reverse DNS are not required.`,
        ),
      ]
    }
    const found = await dns.txt(host)
    if (found.kind === 'failed') {
      return [
        failure(
          `The SPF record for ${host} could not be looked up: ${found.why}.`,
          "Check POSTERN_DNS_SERVERS, or the domain's name servers.",
        ),
      ]
    }
    const records = (found.kind === 'found' ? found.values : []).filter((text) => /^v=spf1( |$)/i.test(text))
    if (records.length !== 1) return [spfFault(host, records.length)]
    return sendersOf(context, records[0] ?? '')
  },
}

const spfFault = (host: string, count: number): Finding =>
  count === 0
    ? failure(
        `${host} (POSTERN_RETURN_PATH_HOST) has no SPF record: every customer's mail fails SPF.`,
        `Publish a TXT record for ${host}: "v=spf1 ip4:<the address of your MTA> -all".`,
      )
    : failure(
        `${host} (POSTERN_RETURN_PATH_HOST) has ${count} SPF records, which is a permanent error (RFC 7208 §4.5).`,
        'Merge them into one record.',
      )

const addressesAtMost = 16

async function sendersOf(context: DoctorContext, record: string): Promise<Finding[]> {
  const { dns, settings } = context
  const mtas = await publicAddresses(context)
  const listed = record.split(/\s+/).flatMap((term) => /^\+?ip[46]:([^/]+)$/i.exec(term)?.[1] ?? [])
  const senders = [...new Set([...listed, ...mtas])].filter((address) => isIP(address) !== 0)
  if (senders.length === 0) {
    return [
      warning(
        `The sending addresses are unknown: the SPF record of ${settings.returnPathHost} lists networks or names only.`,
        'Check on the MTA that each address has a PTR record whose name resolves back to it.',
      ),
    ]
  }
  const named = await Promise.all(senders.slice(0, addressesAtMost).map((address) => nameFault(dns, address)))
  const allowed = await Promise.all(mtas.map((address) => spfRefusal(context, address)))
  return unlessFound(
    [...named, ...allowed],
    `SPF allows ${senders.slice(0, addressesAtMost).join(', ')}, and the reverse DNS of these addresses is correct.`,
  )
}

async function publicAddresses({ dns, settings }: DoctorContext): Promise<string[]> {
  const hosts = settings.mtaHosts.map((url) => smtpAddressOf(url).host)
  const found = await Promise.all(
    hosts.map(async (host) => {
      if (isIP(host) !== 0) return [host]
      const addresses = host.includes('.') ? await dns.addresses(host) : undefined
      return addresses?.kind === 'found' ? addresses.values : []
    }),
  )
  return found.flat().filter((address) => ipaddr.process(address).range() === 'unicast')
}

/** Checks forward-confirmed reverse DNS. Many receivers reject mail from addresses without it. */
async function nameFault(dns: Resolver, address: string): Promise<Finding | undefined> {
  const reverse = await dns.ptr(reverseName(address))
  const remedy = `Ask the provider of ${address} to set its PTR record to the host name of the MTA, and set the A or AAAA record of that name to ${address}.`
  if (reverse.kind !== 'found') {
    const why = reverse.kind === 'failed' ? ` (${reverse.why})` : ''
    return failure(`The sending address ${address} has no PTR record${why}.`, remedy)
  }
  const names = await Promise.all(reverse.values.map((name) => dns.addresses(name)))
  const same = ipaddr.process(address).toNormalizedString()
  const resolvesBack = names.some(
    (found) =>
      found.kind === 'found' &&
      found.values.some((value) => ipaddr.process(value).toNormalizedString() === same),
  )
  if (resolvesBack) return undefined
  return failure(
    `The sending address ${address} has the PTR record ${reverse.values[0]}, which does not resolve back to it.`,
    remedy,
  )
}

/** RFC 1035 §3.5, RFC 3596 §2.5. */
function reverseName(address: string): string {
  const parsed = ipaddr.process(address)
  const bytes = parsed.toByteArray()
  if (parsed.kind() === 'ipv4') return `${bytes.reverse().join('.')}.in-addr.arpa`
  const nibbles = bytes.flatMap((byte) => [byte >> 4, byte & 15]).map((nibble) => nibble.toString(16))
  return `${nibbles.reverse().join('.')}.ip6.arpa`
}

async function spfRefusal({ dns, settings }: DoctorContext, ip: string): Promise<Finding | undefined> {
  const { returnPathHost: host } = settings
  const { status } = await spf({
    ...{ ip, sender: `postmaster@${host}`, helo: host, mta: host, resolver: mailauthResolver(dns) },
  })
  if (status.result === 'pass') return undefined
  return warning(
    `The SPF record of ${host} does not allow ${ip}, an address in POSTERN_MTA_HOSTS: the result is ${status.result}.`,
    `Add ip${isIP(ip)}:${ip} to the SPF record, if mail is sent from it.`,
  )
}
