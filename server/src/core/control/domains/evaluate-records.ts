import type { Lookup } from '../../../platform/net/dns.ts'
import { isNeeded, type WantedRecord } from './records.ts'
import type { DnsRecordView } from './wire.ts'

/**
 * What a look at the DNS says about a domain. Nothing here looks or writes.
 *
 * "It is not there" and "nobody answered" are two things: the first counts against a domain after days, the second after
 * weeks (check-schedule.ts). A name server that is down for a day unverifies nobody.
 */
export interface Observation {
  record: DnsRecordView
  lookup: Lookup
}

export type Finding = 'there' | 'absent' | 'different' | 'unknown'

export function findingOf({ record, lookup }: Observation): Finding {
  if (lookup.kind === 'failed') return 'unknown'
  if (lookup.kind === 'absent') return 'absent'
  if (lookup.values.some((value) => matches(record, value))) return 'there'
  // Others may have their own records under the same name; an alias or a key of ours has room for one value only.
  return record.purpose === 'dkim' || record.type === 'CNAME' ? 'different' : 'absent'
}

function matches({ purpose, type, value: wanted }: WantedRecord, value: string): boolean {
  if (purpose === 'dmarc') return /^v=DMARC1\s*(?:;|$)/i.test(value.trim())
  if (purpose === 'dkim' && type === 'TXT') return publicKeyIn(value) === publicKeyIn(wanted)
  // Any preference will do.
  if (type === 'MX') return hostIn(value) === hostIn(wanted)
  return type === 'CNAME' ? value.toLowerCase() === wanted.toLowerCase() : value.trim() === wanted
}

const hostIn = (mx: string): string => mx.slice(mx.indexOf(' ') + 1).toLowerCase()

/** RFC 6376 §3.6.1: tags in any order, and white space within the key means nothing. */
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

/** A record that was there and is gone has failed; one that never was is waited for. */
export function statusAfter(finding: Finding, before: DnsRecordView['status']): DnsRecordView['status'] {
  switch (finding) {
    case 'unknown':
      return before
    case 'there':
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
  /** What is missing or could not be found out, for a person; null when nothing. */
  complaint: string | null
  /** DNS gave no answer (a time-out, SERVFAIL …) for a record that is needed. */
  isUnanswered: boolean
}

/** What else must be true besides the records: what the provider says. */
export interface ProviderStatus {
  result: Result
  complaint: string | null
}

export function evaluateRecords(
  observations: readonly Observation[],
  /** A key that waits for DNS beside one in use holds nothing up. */
  spareRecordName: string | undefined,
  provider: ProviderStatus,
): Evaluation {
  const needed = observations.filter(({ record }) => isNeeded(record) && record.name !== spareRecordName)
  const findings = needed.map((observation) => ({ ...observation, finding: findingOf(observation) }))
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
  finding === 'there' ? 'complete' : finding === 'unknown' ? 'unknown' : 'incomplete'

function complaintOf({ type, name }: WantedRecord, lookup: Lookup, finding: Finding): string[] {
  switch (finding) {
    case 'there':
      return []
    case 'absent':
      return [`The ${type} record ${name} is not there.`]
    case 'different':
      return [`The ${type} record ${name} has another value.`]
    default:
      return [`${name} could not be looked up: ${lookup.kind === 'failed' ? lookup.why : 'no answer'}.`]
  }
}
