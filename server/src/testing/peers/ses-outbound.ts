import { randomBytes } from 'node:crypto'

/** A message in a `SendEmail` request, and the checks that SES documents for it. */
export interface OutboundMail {
  /** The message id that SES assigns. */
  sesId: string
  to: string
  from: string
  fromDomain: string
  configurationSet: string
  tags: Record<string, string[]>
  raw: Buffer
  at: Date
}

export interface SendEmailBody {
  ConfigurationSetName?: string
  Destination?: { ToAddresses?: string[]; CcAddresses?: string[]; BccAddresses?: string[] }
  EmailTags?: { Name: string; Value: string }[]
  Content?: { Raw?: { Data?: string } }
}

/** The existing configuration set. */
export const sesConfigurationSet = 'postern-events'

type Refusal = readonly [status: number, name: string, message: string]

const maxBytes = 40_000_000
// "ASCII letters, numbers, underscores or dashes", up to 256 characters.
const tagText = /^[A-Za-z0-9_-]{1,256}$/

export function readOutbound(body: SendEmailBody): OutboundMail | { fault: Refusal } {
  const fault = (name: string, message: string): { fault: Refusal } => ({ fault: [400, name, message] })
  const { ConfigurationSetName: configurationSet, Destination, EmailTags = [], Content } = body
  if (configurationSet !== sesConfigurationSet) {
    return fault('NotFoundException', `Configuration set <${configurationSet}> does not exist.`)
  }
  const recipients = Object.values(Destination ?? {}).flat()
  const [to] = recipients
  if (to === undefined || recipients.length > 50) return fault('BadRequestException', 'Invalid destination')
  if (/[^\x21-\x7e]/.test(to))
    return fault('BadRequestException', 'Local address contains control or whitespace')
  for (const { Name, Value } of EmailTags) {
    if (!tagText.test(Name) || !tagText.test(Value)) {
      return fault('BadRequestException', `Invalid tag <${Name}: ${Value}>`)
    }
  }
  const raw = Buffer.from(Content?.Raw?.Data ?? '', 'base64')
  if (raw.length === 0 || raw.length > maxBytes) return fault('BadRequestException', 'Message length')
  const header = raw.toString('latin1', 0, raw.indexOf('\r\n\r\n') + 2)
  const headerFault = faultOfHeader(header)
  if (headerFault !== undefined) return fault('BadRequestException', headerFault)
  const [, from = ''] = /^From:[^\r]*?<?([^\s<>]+@[^\s<>]+?)>?\r$/im.exec(header) ?? []
  if (from === '') return fault('BadRequestException', 'Missing final "From"')
  return {
    ...{ sesId: `${randomBytes(8).toString('hex')}-${randomBytes(16).toString('hex')}-000000`, to, from },
    fromDomain: from.slice(from.lastIndexOf('@') + 1).toLowerCase(),
    configurationSet,
    tags: Object.fromEntries(EmailTags.map(({ Name, Value }) => [Name, [Value]])),
    ...{ raw, at: new Date() },
  }
}

const once = ['Date', 'From', 'Message-ID', 'MIME-Version', 'Subject', 'DKIM-Signature', 'Reply-To']

/** "The following fields can't appear more than once". Bcc is rejected because it would be visible. */
function faultOfHeader(header: string): string | undefined {
  const twice = once.find((name) => (header.match(new RegExp(`^${name}:`, 'gim'))?.length ?? 0) > 1)
  if (twice !== undefined) return `Duplicate header '${twice}'`
  return /^Bcc:/im.test(header) ? 'This peer does not support Bcc' : undefined
}
