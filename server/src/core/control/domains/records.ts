import type { DnsRecordView } from './wire.ts'

/**
 * The DNS records that a domain is asked to publish.
 *
 * Needed: the project's own ownership record, whatever the provider says (a provider's identities are shared by all
 * projects, and with some a subdomain inherits its parent's); DKIM; and, where we send ourselves, the return path, by
 * which bounces come home and SPF aligns. Not needed: MX, which only a domain that receives has use for, and DMARC.
 */
export type WantedRecord = Omit<DnsRecordView, 'status'>

export interface RecordHosts {
  /** Where mail for customers' domains arrives. */
  mxHost: string
  /** What customers' return paths are an alias of: a host with an MX and an SPF record. */
  returnPathHost: string
}

const requiredPurposes: readonly DnsRecordView['purpose'][] = ['ownership', 'dkim', 'return_path']

export const isRequired = ({ purpose }: WantedRecord): boolean => requiredPurposes.includes(purpose)

const ownershipRecord = (name: string, token: string): WantedRecord => ({
  purpose: 'ownership',
  type: 'TXT',
  name: `_postern.${name}`,
  value: `postern-verification=${token}`,
})

export interface PublicKey {
  selector: string
  publicKey: string
}

export const dkimKeyName = (name: string, selector: string): string => `${selector}._domainkey.${name}`

export const dkimKeyRecord = (name: string, { selector, publicKey }: PublicKey): WantedRecord => ({
  purpose: 'dkim',
  type: 'TXT',
  name: dkimKeyName(name, selector),
  value: `v=DKIM1; k=rsa; p=${publicKey}`,
})

/** Where the provider keeps the keys, and changes them behind an alias. */
export const dkimAliasRecord = (name: string, token: string, zone: string): WantedRecord => ({
  purpose: 'dkim',
  type: 'CNAME',
  name: `${token}._domainkey.${name}`,
  value: `${token}.${zone}`,
})

const returnPathRecord = (name: string, host: string): WantedRecord => ({
  purpose: 'return_path',
  type: 'CNAME',
  name: `bounces.${name}`,
  value: host,
})

/** Those that are known from the start. A provider that keeps the keys names its own once it has registered the name. */
export const wantedRecords = (
  { name, token, key }: { name: string; token: string; key: PublicKey | undefined },
  { mxHost, returnPathHost }: RecordHosts,
): WantedRecord[] => [
  ownershipRecord(name, token),
  ...(key ? [dkimKeyRecord(name, key), returnPathRecord(name, returnPathHost)] : []),
  { purpose: 'mx', type: 'MX', name, value: `10 ${mxHost}` },
  { purpose: 'dmarc', type: 'TXT', name: `_dmarc.${name}`, value: 'v=DMARC1; p=none' },
]
