/**
 * Evaluates DNS lookups against the records that a domain needs. Pure: nothing here does I/O.
 *
 * "Absent" and "unknown" differ: a domain fails after days if a record is absent, but only after weeks if lookups fail
 * (check-schedule.ts). A name server that is down for a day does not affect verification.
 */

import type { Lookup } from '../../../platform/net/dns.ts'
import { isRequired, type WantedRecord } from './records.ts'
import type { DnsRecordView } from './wire.ts'

/** A record and the DNS response for its name. */
export interface RecordLookup<Wanted extends DnsRecordView = DnsRecordView> {
  record: Wanted
  lookup: Lookup
}

export type Finding = 'found' | 'absent' | 'different' | 'unknown'

export function findingOf({ record, lookup }: RecordLookup): Finding {
  if (lookup.kind === 'failed') return 'unknown'
  if (lookup.kind === 'absent') return 'absent'
  if (lookup.values.some((value) => matches(record, value))) return 'found'
  // Other TXT and MX records can have the same name. A CNAME and a DKIM key have only one value.
  return record.purpose === 'dkim' || record.type === 'CNAME' ? 'different' : 'absent'
}

function matches({ purpose, type, value: wanted }: WantedRecord, value: string): boolean {
  if (purpose === 'dmarc') return /^v=DMARC1\s*(?:;|$)/i.test(value.trim())
  if (purpose === 'dkim' && type === 'TXT') return publicKeyIn(value) === publicKeyIn(wanted)
  // Any preference is accepted.
  if (type === 'MX') return hostIn(value) === hostIn(wanted)
  return type === 'CNAME' ? value.toLowerCase() === wanted.toLowerCase() : value.trim() === wanted
}

const hostIn = (mx: string): string => mx.slice(mx.indexOf(' ') + 1).toLowerCase()

/** RFC 6376 §3.6.1: tags can have any order, and whitespace within the key is ignored. */
function publicKeyIn(text: string): string | undefined {
  const tags = new Map(
    text.split(';').map((tag) => {
      const [name = '', ...value] = tag.split('=')
      return [name.trim(), value.join('=').replace(/\s/g, '')] as const
    }),
  )
  if ((tags.get('v') ?? 'DKIM1') !== 'DKIM1' || (tags.get('k') ?? 'rsa') !== 'rsa') return undefined
  return tags.get('p')
}

/**
 * A record that was found before and is now absent has the status failed. A record that was never found stays pending.
 */
export function statusAfter(finding: Finding, before: DnsRecordView['status']): DnsRecordView['status'] {
  switch (finding) {
    case 'unknown':
      return before
    case 'found':
      return 'verified'
    case 'different':
      return 'failed'
    default:
      return before === 'pending' ? 'pending' : 'failed'
  }
}

export type Result = 'complete' | 'incomplete' | 'unknown'

export interface Evaluation {
  result: Result
  /** The missing records and failed lookups, as sentences, or null if there are none. */
  complaint: string | null
  /** The lookup of a required record failed (timeout, SERVFAIL …). */
  isUnanswered: boolean
}

/** The provider's own verification, required in addition to the records. */
export interface ProviderStatus {
  result: Result
  complaint: string | null
}

export function evaluateRecords(
  lookups: readonly RecordLookup[],
  /** A second, pending DKIM key is not required. */
  optionalRecordName: string | undefined,
  provider: ProviderStatus,
): Evaluation {
  const required = lookups.filter(({ record }) => isRequired(record) && record.name !== optionalRecordName)
  const findings = required.map((one) => ({ ...one, finding: findingOf(one) }))
  const complaints = [
    ...findings.flatMap(({ record, lookup, finding }) => complaintOf(record, lookup, finding)),
    ...(provider.complaint === null ? [] : [provider.complaint]),
  ]
  const results = [...findings.map(({ finding }) => resultOf(finding)), provider.result]
  const result = results.includes('incomplete')
    ? 'incomplete'
    : results.includes('unknown')
      ? 'unknown'
      : 'complete'
  return {
    result,
    complaint: complaints.length === 0 ? null : complaints.join(' '),
    isUnanswered: findings.some(({ finding }) => finding === 'unknown'),
  }
}

const resultOf = (finding: Finding): Result =>
  finding === 'found' ? 'complete' : finding === 'unknown' ? 'unknown' : 'incomplete'

function complaintOf({ type, name }: WantedRecord, lookup: Lookup, finding: Finding): string[] {
  switch (finding) {
    case 'found':
      return []
    case 'absent':
      return [`The ${type} record ${name} was not found.`]
    case 'different':
      return [`The ${type} record ${name} has a different value.`]
    default:
      return [`${name} could not be looked up: ${lookup.kind === 'failed' ? lookup.why : 'no response'}.`]
  }
}
