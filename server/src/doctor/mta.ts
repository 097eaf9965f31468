import { isIPv4 } from 'node:net'
import { maxMessageBytes } from '../core/mail/messages/draft.ts'
import { type SmtpAddress, SmtpSession } from '../providers/smtp-session.ts'
import { smtpAddressOf } from '../providers/smtp-transport.ts'
import { type Check, type Finding, failure, messageOf, ok, unlessFound, warning } from './check.ts'

/** What docs/operations/mta.md asks of an MTA, asked of each. Nothing is sent: a mail is begun and taken back. */
export const mtaCheck: Check = {
  name: 'mta',
  async look({ settings: { mtaHosts, publicUrl, returnPathHost } }) {
    if (mtaHosts.length === 0) return [ok('There is no MTA of our own (POSTERN_MTA_HOSTS is empty).')]
    const findings = await Promise.all(
      mtaHosts.map((url) => lookAt(smtpAddressOf(url), publicUrl.hostname, `doctor@${returnPathHost}`)),
    )
    return findings.flat()
  },
}

const timeouts = { openMs: 8_000, silenceMs: 8_000, mailMs: 8_000, idleMs: 8_000 }

async function lookAt(address: SmtpAddress, name: string, sender: string): Promise<Finding[]> {
  const where = `${address.host}:${address.port}`
  let session: SmtpSession
  try {
    session = await SmtpSession.open(address, name, timeouts)
  } catch (error) {
    return [
      failure(
        `The MTA at ${where} cannot be used: ${messageOf(error)}.`,
        'Look that it runs, that POSTERN_MTA_HOSTS names it rightly, and that no firewall is between.',
      ),
    ]
  }
  try {
    return unlessFound(
      [...missingOffers(session, address, where), await relayFault(session, where, sender)],
      `The MTA at ${where} takes mail for anybody, and offers what Postern needs.`,
    )
  } finally {
    session.close()
  }
}

// The signature and the header of a mail come on top.
const neededBytes = maxMessageBytes + 64 * 1024

function missingOffers(
  { offers, isEncrypted }: SmtpSession,
  { host }: SmtpAddress,
  where: string,
): Finding[] {
  const sizeLimit = Number(offers.get('SIZE') || 0)
  const isHere = host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
  return [
    ...(offers.has('DSN')
      ? []
      : [
          failure(
            `The MTA at ${where} does not offer DSN: nothing tells what became of a mail.`,
            'With Postfix, take dsn out of smtpd_discard_ehlo_keywords (and of the table of ' +
              'smtpd_discard_ehlo_keyword_address_maps) for connections from Postern.',
          ),
        ]),
    ...(sizeLimit === 0 || sizeLimit >= neededBytes
      ? []
      : [
          failure(
            `The MTA at ${where} takes mail up to ${sizeLimit} octets, and Postern accepts ${maxMessageBytes}.`,
            `With Postfix, set message_size_limit to ${neededBytes} or more.`,
          ),
        ]),
    ...(isEncrypted || isHere
      ? []
      : [
          warning(
            `The MTA at ${where} offers no STARTTLS: mail goes there in the clear.`,
            'With Postfix, set smtpd_tls_security_level = may, with a certificate.',
          ),
        ]),
    ...['SMTPUTF8', '8BITMIME']
      .filter((keyword) => !offers.has(keyword))
      .map((keyword) =>
        warning(
          `The MTA at ${where} does not offer ${keyword}: mail that needs it is refused for good.`,
          `With Postfix, take ${keyword.toLowerCase()} out of smtpd_discard_ehlo_keywords.`,
        ),
      ),
  ]
}

// Somebody far away, whose domain certainly has an MX; they hear nothing of it.
const stranger = 'postmaster@iana.org'

async function relayFault(session: SmtpSession, where: string, sender: string): Promise<Finding | undefined> {
  const refused = (what: string, reply: string) =>
    failure(
      `The MTA at ${where} does not take mail ${what}: "${reply}".`,
      "Let it relay for the address that Postern connects from: with Postfix, put that into mynetworks, and let customers' " +
        'return paths through.',
    )
  try {
    const from = await session.ask(`MAIL FROM:<${sender}>`, timeouts.silenceMs)
    if (!from.startsWith('2')) return refused(`from ${sender}`, from)
    const to = await session.ask(`RCPT TO:<${stranger}>`, timeouts.silenceMs)
    if (!to.startsWith('2')) return refused(`for ${stranger}`, to)
    await session.ask('RSET', timeouts.silenceMs)
    return undefined
  } catch (error) {
    return refused('at all', messageOf(error))
  }
}
