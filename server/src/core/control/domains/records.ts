import type { DnsRecordView } from './wire.ts'

/**
 * The DNS records of a domain.
 *
 * Required: the project's own ownership record, regardless of the provider's verification (all projects share a provider's
 * identities, and with some providers a subdomain inherits its parent's verification); DKIM; and, for mail sent through the
 * operator's MTAs, the return path, which receives bounces and aligns SPF. Not required: DMARC, and the MX record, because
 * only a receiving domain needs one.
 */
export type WantedRecord = Omit<DnsRecordView, 'status'>

export interface RecordHosts {
  /** The MX host for customers' domains. */
  mxHost: string
  /** The CNAME target of customers' return paths: a host with an MX and an SPF record. */
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

/** For a provider that manages the keys and rotates them behind a CNAME. */
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

/** The records known from the start. A provider that manages the keys returns its records when it registers the name. */
export const wantedRecords = (
  { name, token, key }: { name: string; token: string; key: PublicKey | undefined },
  { mxHost, returnPathHost }: RecordHosts,
): WantedRecord[] => [
  ownershipRecord(name, token),
  ...(key ? [dkimKeyRecord(name, key), returnPathRecord(name, returnPathHost)] : []),
  { purpose: 'mx', type: 'MX', name, value: `10 ${mxHost}` },
  { purpose: 'dmarc', type: 'TXT', name: `_dmarc.${name}`, value: 'v=DMARC1; p=none' },
]
