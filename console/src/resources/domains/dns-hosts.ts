import type { DnsRecord } from '../../api/operations.gen.ts'

/** What common DNS hosts call the fields of a record, and which name they expect. */
export interface DnsHost {
  label: string
  nameField: string
  /** By type, where the field has several names. */
  valueField: string | Record<DnsRecord['type'], string>
  /** The name at the zone's own domain, if names are relative to the zone. Undefined: names are complete. */
  apex?: string
  /** Whether an MX record's priority has its own field. */
  hasPriorityField: boolean
  /** Whether TXT values are entered in quotation marks, at most 255 characters in each pair. */
  isTxtQuoted?: boolean
  /** Where to add a record, and what to watch out for. */
  steps: string
}

export const dnsHosts = {
  other: {
    label: 'Other',
    nameField: 'Name',
    valueField: 'Value',
    hasPriorityField: false,
    steps:
      'Names are complete. If your DNS host appends your domain to every name, choose the host from the list or leave out that part.',
  },
  cloudflare: {
    label: 'Cloudflare',
    nameField: 'Name',
    valueField: { TXT: 'Content', CNAME: 'Target', MX: 'Mail server' },
    apex: '@',
    hasPriorityField: true,
    steps: 'Open DNS › Records and choose “Add record”. Set the proxy status of CNAME records to “DNS only”.',
  },
  route53: {
    label: 'Amazon Route 53',
    nameField: 'Record name',
    valueField: 'Value',
    apex: '',
    hasPriorityField: false,
    isTxtQuoted: true,
    steps: 'Open the hosted zone and choose “Create record”. Enter TXT values with their quotation marks.',
  },
  godaddy: {
    label: 'GoDaddy',
    nameField: 'Name',
    valueField: 'Value',
    apex: '@',
    hasPriorityField: true,
    steps: 'Open your domain, choose DNS, then “Add New Record”. GoDaddy appends your domain to every name.',
  },
  namecheap: {
    label: 'Namecheap',
    nameField: 'Host',
    valueField: { TXT: 'Value', CNAME: 'Target', MX: 'Value' },
    apex: '@',
    hasPriorityField: true,
    steps:
      'Open Domain List › Manage › Advanced DNS and choose “Add New Record”. MX records are under Mail Settings › Custom MX.',
  },
  squarespace: {
    label: 'Squarespace (Google Domains)',
    nameField: 'Host',
    valueField: 'Data',
    apex: '@',
    hasPriorityField: true,
    steps: 'Open Domains, your domain, DNS, and choose “Add record” under Custom records.',
  },
} as const satisfies Record<string, DnsHost>

export type DnsHostId = keyof typeof dnsHosts

/** What to enter for a record. */
export interface Entry {
  nameField: string
  /** Empty where the host wants no name. */
  name: string
  valueField: string
  value: string
  /** An MX record's priority, if it has its own field. */
  priority?: string
}

export function entryOf(record: DnsRecord, host: DnsHost, zone: string): Entry {
  const { type, value } = record
  const { valueField, hasPriorityField, isTxtQuoted = false } = host
  const [priority, server] = type === 'MX' && hasPriorityField ? value.split(' ') : []
  return {
    nameField: host.nameField,
    name: nameIn(record.name, host, zone),
    valueField: typeof valueField === 'string' ? valueField : valueField[type],
    value: server ?? (type === 'TXT' && isTxtQuoted ? quoted(value) : value),
    ...(server !== undefined && priority !== undefined && { priority }),
  }
}

function nameIn(name: string, { apex }: DnsHost, zone: string): string {
  if (apex === undefined) return name
  return name === zone ? apex : name.endsWith(`.${zone}`) ? name.slice(0, -zone.length - 1) : name
}

/** RFC 1035 §3.3: a string in a record has at most 255 octets, and a record can have several strings. */
export function quoted(value: string): string {
  const strings = value.match(/.{1,255}/gs) ?? ['']
  return strings.map((part) => `"${part.replace(/["\\]/g, '\\$&')}"`).join(' ')
}

/** The domains that the DNS zone of a domain can have: the domain itself, or one above it. */
export function zonesOf(domain: string): string[] {
  const labels = domain.split('.')
  return labels.slice(0, -1).map((_, start) => labels.slice(start).join('.'))
}

/** Below a country's own second level, such as co.uk or com.au, a registered domain has three labels. */
const countrySecondLevel = /\.(?:ac|co|com|edu|gov|ne|net|or|org)\.[a-z]{2}$/

/** The zone is usually the registered domain. It is a guess, which the user can change. */
export function likelyZoneOf(domain: string): string {
  const count = countrySecondLevel.test(domain) ? 3 : 2
  return domain.split('.').slice(-count).join('.')
}
