import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { spf } from 'mailauth'
import { mailauthResolver } from '../core/mail/inbound/mailauth-resolver.ts'
import type { Resolver } from '../platform/net/dns.ts'
import { smtpAddressOf } from '../providers/smtp-transport.ts'
import { type Check, type DoctorContext, type Finding, failure, ok, unlessFound, warning } from './check.ts'

/**
 * The addresses that mail leaves from: SPF of the return-path host, which holds for every customer, and the names that
 * the addresses have. From which address an MTA sends is for the MTA to know; here it is guessed from what the SPF record
 * lists, and from POSTERN_MTA_HOSTS as far as these are on the internet.
 */
export const senderCheck: Check = {
  name: 'senders',
  async look(ground) {
    const { dns, settings } = ground
    const { returnPathHost: host, mtaHosts } = settings
    if (mtaHosts.length === 0) return [ok('No mail leaves by MTAs of our own (POSTERN_MTA_HOSTS is empty).')]
    if (!host.includes('.')) {
      return [
        ok(`${host} is for a trial on one machine: nobody outside looks at SPF or at names of addresses.`),
      ]
    }
    const found = await dns.txt(host)
    if (found.kind === 'failed') {
      return [
        failure(
          `SPF of ${host} could not be looked up: ${found.why}.`,
          'Look at POSTERN_DNS_SERVERS, or at the name servers of the domain.',
        ),
      ]
    }
    const records = (found.kind === 'found' ? found.values : []).filter((text) => /^v=spf1( |$)/i.test(text))
    if (records.length !== 1) return [spfFault(host, records.length)]
    return sendersOf(ground, records[0] ?? '')
  },
}

const spfFault = (host: string, count: number): Finding =>
  count === 0
    ? failure(
        `${host} (POSTERN_RETURN_PATH_HOST) has no SPF record: mail of every customer fails SPF.`,
        `Publish a TXT record for ${host}: "v=spf1 ip4:<the address of your MTA> -all".`,
      )
    : failure(
        `${host} (POSTERN_RETURN_PATH_HOST) has ${count} SPF records, which count as none (RFC 7208 §4.5).`,
        'Make one of them.',
      )

const addressesAtMost = 16

async function sendersOf(ground: DoctorContext, record: string): Promise<Finding[]> {
  const { dns, settings } = ground
  const mtas = await publicAddresses(ground)
  const listed = record.split(/\s+/).flatMap((term) => /^\+?ip[46]:([^/]+)$/i.exec(term)?.[1] ?? [])
  const senders = [...new Set([...listed, ...mtas])].filter((address) => isIP(address) !== 0)
  if (senders.length === 0) {
    return [
      warning(
        `From which addresses mail leaves cannot be known from here: the SPF record of ${settings.returnPathHost} lists networks or names only.`,
        'Look at the MTA itself that each address has a PTR record, whose name leads back to it.',
      ),
    ]
  }
  const named = await Promise.all(senders.slice(0, addressesAtMost).map((address) => nameFault(dns, address)))
  const allowed = await Promise.all(mtas.map((address) => spfRefusal(ground, address)))
  return unlessFound(
    [...named, ...allowed],
    `SPF allows ${senders.slice(0, addressesAtMost).join(', ')}, and the names of these addresses lead back to them.`,
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

/** Forward-confirmed reverse DNS: without it many take no mail. */
async function nameFault(dns: Resolver, address: string): Promise<Finding | undefined> {
  const reverse = await dns.ptr(reverseName(address))
  const remedy = `Have whoever gave you ${address} set its PTR record to the host name of the MTA, and that name's A or AAAA record to ${address}.`
  if (reverse.kind !== 'found') {
    const why = reverse.kind === 'failed' ? ` (${reverse.why})` : ''
    return failure(`${address}, from which mail leaves, has no PTR record${why}.`, remedy)
  }
  const names = await Promise.all(reverse.values.map((name) => dns.addresses(name)))
  const same = ipaddr.process(address).toNormalizedString()
  const leadsBack = names.some(
    (found) =>
      found.kind === 'found' &&
      found.values.some((value) => ipaddr.process(value).toNormalizedString() === same),
  )
  if (leadsBack) return undefined
  return failure(
    `${address}, from which mail leaves, is called ${reverse.values[0]}, and that name does not lead back to it.`,
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
    `SPF of ${host} does not allow ${ip}, an address of POSTERN_MTA_HOSTS: the result is ${status.result}.`,
    `Add ip${isIP(ip)}:${ip} to the SPF record, if mail leaves from there.`,
  )
}
