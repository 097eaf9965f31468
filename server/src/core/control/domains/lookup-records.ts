import type { ReadTx } from '../../../platform/db/db.ts'
import type { Resolver } from '../../../platform/net/dns.ts'
import { listRecords } from './check.sql.ts'
import { evaluateRecords, type RecordLookup } from './evaluate-records.ts'
import { findSendingDomains } from './lookup-records.sql.ts'
import type { DnsRecordView } from './wire.ts'

/** Looks up each record in DNS. */
export function lookupRecords<Wanted extends DnsRecordView>(
  dns: Resolver,
  records: readonly Wanted[],
): Promise<RecordLookup<Wanted>[]> {
  return Promise.all(
    records.map(async (record) => {
      const query = { TXT: dns.txt, CNAME: dns.cname, MX: dns.mx }[record.type]
      return { record, lookup: await query(record.name) }
    }),
  )
}

export interface SendingDomain {
  project_id: number
  project_name: string
  name: string
  records: DnsRecordView[]
}

/**
 * A sample of verified domains whose projects sent mail through the operator's MTAs this month. The sample differs each day.
 */
export async function sampleSending(tx: ReadTx, atMost: number): Promise<SendingDomain[]> {
  const domains: SendingDomain[] = []
  for (const { id, ...domain } of await findSendingDomains(tx, atMost)) {
    domains.push({ ...domain, records: await listRecords(tx, domain.project_id, id) })
  }
  return domains
}

/** What the domain still needs before it can send, or null if nothing is missing. A pending DKIM key is not required. */
export async function complaintAbout(dns: Resolver, { records }: SendingDomain): Promise<string | null> {
  const shown = records.filter(({ purpose, status }) => purpose !== 'dkim' || status !== 'pending')
  return evaluateRecords(await lookupRecords(dns, shown), undefined, { result: 'complete', complaint: null })
    .complaint
}
