import { isIP } from 'node:net'
import type { Resolver } from '../platform/net/dns.ts'
import { SmtpSession } from '../providers/smtp-session.ts'
import { type Check, type DoctorContext, type Finding, failure, messageOf, ok, warning } from './check.ts'

/** Our own names in the DNS: where mail for customers arrives, and where reports come back to. */
export const nameChecks: Check[] = [
  {
    name: 'names.mx-host',
    async look({ dns, settings: { mxHost, inboundPort } }) {
      if (inboundPort === undefined) {
        return [ok("Mail for customers' domains is not taken in (POSTERN_INBOUND_PORT is empty).")]
      }
      const fault = await hostFault(dns, 'POSTERN_MX_HOST', mxHost)
      return [fault ?? ok(`${mxHost} (POSTERN_MX_HOST) has an address, and is no alias.`)]
    },
  },
  { name: 'names.return-path-host', look: returnPath },
]

const isPrivateName = (name: string): boolean => !name.includes('.') || isIP(name) !== 0

/** RFC 2181 §10.3: what an MX names is no alias. What others are aliases of had better be none, either. */
async function hostFault(dns: Resolver, setting: string, host: string): Promise<Finding | undefined> {
  if (isPrivateName(host)) {
    return warning(
      `${setting} is ${host}, which nobody outside of this machine can find.`,
      `Set ${setting} to a name that is in the DNS. For a trial on one machine there is nothing to do.`,
    )
  }
  const [alias, addresses] = await Promise.all([dns.cname(host), dns.addresses(host)])
  if (alias.kind === 'found') {
    return failure(
      `${host} (${setting}) is an alias (CNAME) of ${alias.values[0]}: some senders take no mail to such a name.`,
      `Give ${host} A and AAAA records in place of the CNAME.`,
    )
  }
  if (addresses.kind === 'failed') {
    return failure(
      `${host} (${setting}) could not be looked up: ${addresses.why}.`,
      'Look at POSTERN_DNS_SERVERS, or at the name servers of the domain.',
    )
  }
  if (addresses.kind === 'absent') {
    return failure(`${host} (${setting}) has no address.`, `Publish an A or AAAA record for ${host}.`)
  }
  return undefined
}

async function returnPath(ground: DoctorContext): Promise<Finding[]> {
  const { dns, settings } = ground
  const { returnPathHost: host } = settings
  if (isPrivateName(host)) return [(await hostFault(dns, 'POSTERN_RETURN_PATH_HOST', host)) ?? ok('')]
  const [alias, exchanges] = await Promise.all([dns.cname(host), dns.mx(host)])
  if (alias.kind === 'found') {
    return [
      failure(
        `${host} (POSTERN_RETURN_PATH_HOST) is an alias (CNAME) of ${alias.values[0]}, and can have no MX and no SPF of its own.`,
        `Give ${host} an MX and a TXT record in place of the CNAME.`,
      ),
    ]
  }
  // RFC 5321 §5.1: without an MX the host itself is meant.
  const [first = `0 ${host}`] = exchanges.kind === 'found' ? exchanges.values : []
  const exchange = first.slice(first.indexOf(' ') + 1)
  const addresses = await dns.addresses(exchange)
  if (addresses.kind !== 'found') {
    const why = addresses.kind === 'failed' ? ` (${addresses.why})` : ''
    return [
      failure(
        `Reports about mail cannot come back: ${exchange}, the MX of ${host}, has no address${why}.`,
        `Publish an MX record for ${host} (POSTERN_RETURN_PATH_HOST) that names a host with an address.`,
      ),
    ]
  }
  return [await reportsArrive(ground, exchange, addresses.values[0] ?? '')]
}

const timeouts = { openMs: 8_000, silenceMs: 8_000, mailMs: 8_000, idleMs: 8_000 }

/** Whoever takes the address for complaints takes reports, too: the intake, or an MTA that passes mail on to it. */
async function reportsArrive(
  { settings }: DoctorContext,
  exchange: string,
  address: string,
): Promise<Finding> {
  const { returnPathHost, publicUrl } = settings
  const mailbox = `fbl@${returnPathHost}`
  let session: SmtpSession | undefined
  try {
    session = await SmtpSession.open(
      { host: address, port: 25, isTls: false, login: null },
      publicUrl.hostname,
      timeouts,
    )
    await session.ask('MAIL FROM:<>', timeouts.silenceMs)
    const reply = await session.ask(`RCPT TO:<${mailbox}>`, timeouts.silenceMs)
    if (reply.startsWith('2')) return ok(`Reports for ${returnPathHost} arrive: ${exchange} takes them.`)
    return failure(
      `${exchange}, the MX of ${returnPathHost}, takes no reports: it answers ${mailbox} with "${reply}".`,
      'Let port 25 of that host lead to POSTERN_BOUNCE_PORT, as docs/operations/feedback.md tells.',
    )
  } catch (error) {
    return warning(
      `${exchange}, the MX of ${returnPathHost}, cannot be reached from here at port 25: ${messageOf(error)}.`,
      'Look that `postern intake` runs and that port 25 of that host leads to POSTERN_BOUNCE_PORT. Where this machine may ' +
        'not open port 25 itself, look from another one.',
    )
  } finally {
    session?.close()
  }
}
