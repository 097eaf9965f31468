import { isIPv4 } from 'node:net'
import { maxMessageBytes } from '../core/mail/messages/draft.ts'
import { type SmtpAddress, SmtpClient } from '../providers/smtp-client.ts'
import { smtpAddressOf } from '../providers/smtp-transport.ts'
import { type Check, type Finding, failure, messageOf, ok, unlessFound, warning } from './check.ts'

/** Checks each MTA for what docs/operations/mta.md requires. Sends nothing: the transaction is reset before DATA. */
export const mtaCheck: Check = {
  name: 'mta',
  async run({ settings: { mtaHosts, publicUrl, returnPathHost, kumomtaTokens } }) {
    if (mtaHosts.length === 0) return [ok('No MTA is configured (POSTERN_MTA_HOSTS is empty).')]
    const own = {
      name: publicUrl.hostname,
      sender: `doctor@${returnPathHost}`,
      needsDsn: kumomtaTokens.length === 0,
    }
    const findings = await Promise.all(mtaHosts.map((url) => checkMta(smtpAddressOf(url), own)))
    return findings.flat()
  },
}

const timeouts = { openMs: 8_000, silenceMs: 8_000, mailMs: 8_000, idleMs: 8_000 }

interface MtaExpectations {
  name: string
  sender: string
  /** False if the MTA may be KumoMTA, which posts its log records instead of sending DSNs. */
  needsDsn: boolean
}

async function checkMta(
  address: SmtpAddress,
  { name, sender, needsDsn }: MtaExpectations,
): Promise<Finding[]> {
  const where = `${address.host}:${address.port}`
  let session: SmtpClient
  try {
    session = await SmtpClient.open(address, name, timeouts)
  } catch (error) {
    return [
      failure(
        `The MTA at ${where} cannot be used: ${messageOf(error)}.`,
        'Check that it is running, that its address in POSTERN_MTA_HOSTS is correct, and that no firewall blocks it.',
      ),
    ]
  }
  try {
    return unlessFound(
      [...missingOffers(session, address, needsDsn), await relayFault(session, where, sender)],
      `The MTA at ${where} relays mail and offers every extension that Postern needs.`,
    )
  } finally {
    session.close()
  }
}

// Includes space for the DKIM signature and other headers that Postern adds.
const neededBytes = maxMessageBytes + 64 * 1024

function missingOffers(
  { extensions, isEncrypted }: SmtpClient,
  { host, port }: SmtpAddress,
  needsDsn: boolean,
): Finding[] {
  const where = `${host}:${port}`
  const sizeLimit = Number(extensions.get('SIZE') || 0)
  const isHere = host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
  return [
    ...(extensions.has('DSN') || !needsDsn
      ? []
      : [
          failure(
            `The MTA at ${where} does not offer DSN: Postern gets no delivery reports.`,
            'With Postfix, remove dsn from smtpd_discard_ehlo_keywords (and from the table of ' +
              'smtpd_discard_ehlo_keyword_address_maps) for connections from Postern.',
          ),
        ]),
    ...(sizeLimit === 0 || sizeLimit >= neededBytes
      ? []
      : [
          failure(
            `The MTA at ${where} accepts messages up to ${sizeLimit} octets, while Postern accepts up to ${maxMessageBytes}.`,
            `With Postfix, set message_size_limit to ${neededBytes} or more.`,
          ),
        ]),
    ...(isEncrypted || isHere
      ? []
      : [
          warning(
            `The MTA at ${where} offers no STARTTLS: mail is sent to it unencrypted.`,
            'With Postfix, set smtpd_tls_security_level = may, with a certificate.',
          ),
        ]),
    ...['SMTPUTF8', '8BITMIME']
      .filter((keyword) => !extensions.has(keyword))
      .map((keyword) =>
        warning(
          `The MTA at ${where} does not offer ${keyword}: mail that needs it fails permanently.`,
          `With Postfix, remove ${keyword.toLowerCase()} from smtpd_discard_ehlo_keywords.`,
        ),
      ),
  ]
}

// An external recipient whose domain has an MX record. Nothing is sent to it.
const externalRecipient = 'postmaster@iana.org'

async function relayFault(session: SmtpClient, where: string, sender: string): Promise<Finding | undefined> {
  const refused = (what: string, reply: string) =>
    failure(
      `The MTA at ${where} does not accept mail ${what}: "${reply}".`,
      "Allow it to relay for the address that Postern connects from: with Postfix, add it to mynetworks, and accept customers' " +
        'return paths as senders.',
    )
  try {
    const from = await session.command(`MAIL FROM:<${sender}>`, timeouts.silenceMs)
    if (!from.startsWith('2')) return refused(`from ${sender}`, from)
    const to = await session.command(`RCPT TO:<${externalRecipient}>`, timeouts.silenceMs)
    if (!to.startsWith('2')) return refused(`for ${externalRecipient}`, to)
    await session.command('RSET', timeouts.silenceMs)
    return undefined
  } catch (error) {
    return refused('at all', messageOf(error))
  }
}
