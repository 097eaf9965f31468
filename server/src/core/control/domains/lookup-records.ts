import type { ReadTx } from '../../../platform/db/db.ts'
import type { Lookup, Resolver } from '../../../platform/net/dns.ts'
import { listRecords } from './check.sql.ts'
import { evaluateRecords } from './evaluate-records.ts'
import { findSendingDomains } from './lookup-records.sql.ts'
import type { DnsRecordView } from './wire.ts'

/** What the DNS says about each record, right now. */
export function lookupRecords<Wanted extends DnsRecordView>(
  dns: Resolver,
  records: readonly Wanted[],
): Promise<{ record: Wanted; lookup: Lookup }[]> {
  return Promise.all(
    records.map(async (record) => {
      const ask = { TXT: dns.txt, CNAME: dns.cname, MX: dns.mx }[record.type]
      return { record, lookup: await ask(record.name) }
    }),
  )
}

export interface SendingDomain {
  project_id: number
  name: string
  records: DnsRecordView[]
}

/** Verified domains of projects that have sent this month by our own MTAs: some of them, other ones each day. */
export async function sampleSending(tx: ReadTx, atMost: number): Promise<SendingDomain[]> {
  const domains: SendingDomain[] = []
  for (const { id, project_id, name } of await findSendingDomains(tx, atMost)) {
    domains.push({ project_id, name, records: await listRecords(tx, project_id, id) })
  }
  return domains
}

/** What is missing of what it needs to send; null when nothing. A key that waits for its record is not missed. */
export async function complaintAbout(dns: Resolver, { records }: SendingDomain): Promise<string | null> {
  const shown = records.filter(({ purpose, status }) => purpose !== 'dkim' || status !== 'pending')
  return evaluateRecords(await lookupRecords(dns, shown), undefined, { result: 'complete', complaint: null })
    .complaint
}
