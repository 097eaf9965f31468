import { isIP } from 'node:net'
import type { Resolver } from '../platform/net/dns.ts'
import { SmtpClient } from '../providers/smtp-client.ts'
import { type Check, type DoctorContext, type Finding, failure, messageOf, ok, warning } from './check.ts'

/**
 * Checks the DNS of POSTERN_MX_HOST, which receives inbound mail, and of POSTERN_RETURN_PATH_HOST, which receives
 * reports.
 */
export const nameChecks: Check[] = [
  {
    name: 'names.mx-host',
    async run({ dns, settings: { mxHost, inboundPort } }) {
      if (inboundPort === undefined) {
        return [ok('Inbound mail is not enabled (POSTERN_INBOUND_PORT is empty).')]
      }
      const fault = await hostFault(dns, 'POSTERN_MX_HOST', mxHost)
      return [fault ?? ok(`${mxHost} (POSTERN_MX_HOST) has an address and is not an alias.`)]
    },
  },
  { name: 'names.return-path-host', run: returnPath },
]

const isPrivateName = (name: string): boolean => !name.includes('.') || isIP(name) !== 0

/**
 * RFC 2181 §10.3: the target of an MX must not be an alias. The target of customers' CNAME records should not be an
 * alias either.
 */
async function hostFault(dns: Resolver, setting: string, host: string): Promise<Finding | undefined> {
  if (isPrivateName(host)) {
    return warning(
      `${setting} is ${host}, which cannot be resolved outside this machine.`,
      `Set ${setting} to a public DNS name. For a trial on one machine, ignore this.`,
    )
  }
  const [alias, addresses] = await Promise.all([dns.cname(host), dns.addresses(host)])
  if (alias.kind === 'found') {
    return failure(
      `${host} (${setting}) is an alias (CNAME) of ${alias.values[0]}: some senders do not deliver to such a name.`,
      `Give ${host} A and AAAA records instead of the CNAME.`,
    )
  }
  if (addresses.kind === 'failed') {
    return failure(
      `${host} (${setting}) could not be looked up: ${addresses.why}.`,
      "Check POSTERN_DNS_SERVERS, or the domain's name servers.",
    )
  }
  if (addresses.kind === 'absent') {
    return failure(`${host} (${setting}) has no address.`, `Publish an A or AAAA record for ${host}.`)
  }
  return undefined
}

async function returnPath(context: DoctorContext): Promise<Finding[]> {
  const { dns, settings } = context
  const { returnPathHost: host } = settings
  if (isPrivateName(host)) return [(await hostFault(dns, 'POSTERN_RETURN_PATH_HOST', host)) ?? ok('')]
  const [alias, exchanges] = await Promise.all([dns.cname(host), dns.mx(host)])
  if (alias.kind === 'found') {
    return [
      failure(
        `${host} (POSTERN_RETURN_PATH_HOST) is an alias (CNAME) of ${alias.values[0]}, so it cannot have its own MX and SPF records.`,
        `Replace the CNAME record of ${host} with MX and TXT records.`,
      ),
    ]
  }
  // RFC 5321 §5.1: without an MX record, mail is delivered to the host itself.
  const [first = `0 ${host}`] = exchanges.kind === 'found' ? exchanges.values : []
  const exchange = first.slice(first.indexOf(' ') + 1)
  const addresses = await dns.addresses(exchange)
  if (addresses.kind !== 'found') {
    const why = addresses.kind === 'failed' ? ` (${addresses.why})` : ''
    return [
      failure(
        `Bounces and reports cannot be received: ${exchange}, the MX of ${host}, has no address${why}.`,
        `Publish an MX record for ${host} (POSTERN_RETURN_PATH_HOST) that points to a host with an address.`,
      ),
    ]
  }
  return [await reportsArrive(context, exchange, addresses.values[0] ?? '')]
}

const timeouts = { openMs: 8_000, silenceMs: 8_000, mailMs: 8_000, idleMs: 8_000 }

/** A server that accepts the complaint address accepts reports: the intake, or an MTA that relays to it. */
async function reportsArrive(
  { settings }: DoctorContext,
  exchange: string,
  address: string,
): Promise<Finding> {
  const { returnPathHost, publicUrl } = settings
  const mailbox = `fbl@${returnPathHost}`
  let session: SmtpClient | undefined
  try {
    session = await SmtpClient.open(
      { host: address, port: 25, isTls: false, login: null },
      publicUrl.hostname,
      timeouts,
    )
    await session.command('MAIL FROM:<>', timeouts.silenceMs)
    const reply = await session.command(`RCPT TO:<${mailbox}>`, timeouts.silenceMs)
    if (reply.startsWith('2')) return ok(`${exchange} accepts reports for ${returnPathHost}.`)
    return failure(
      `${exchange}, the MX of ${returnPathHost}, does not accept reports: it rejects ${mailbox} with "${reply}".`,
      'Forward port 25 of that host to POSTERN_BOUNCE_PORT; see docs/operations/feedback.md.',
    )
  } catch (error) {
    return warning(
      `${exchange}, the MX of ${returnPathHost}, cannot be reached from here on port 25: ${messageOf(error)}.`,
      'Check that `postern intake` is running and that port 25 of that host is forwarded to POSTERN_BOUNCE_PORT. If this ' +
        'machine cannot connect to port 25, run the check on another machine.',
    )
  } finally {
    session?.close()
  }
}
