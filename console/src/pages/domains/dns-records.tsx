import { Group, Text, Title } from '@mantine/core'
import type { DnsRecord, Domain } from '../../api/operations.gen.ts'
import { useOne } from '../../api/queries.ts'
import { Status } from '../../components/badge.tsx'
import { Copy } from '../../components/copy.tsx'
import { QueryState } from '../../components/states.tsx'
import classes from './dns-records.module.css'
import { zoneOf } from './zone.ts'

const purposes: Record<DnsRecord['purpose'], [name: string, remark: string]> = {
  ownership: ['Ownership', 'required'],
  dkim: ['DKIM', 'required'],
  return_path: ['Return path', 'required'],
  mx: ['MX', 'for inbound mail'],
  dmarc: ['DMARC', 'recommended'],
}

/** The DNS records to publish, copyable one by one or together as a zone file. */
export function DnsRecords({ domain: { dns_records: records, identity } }: { domain: Domain }) {
  const zone = zoneOf(records)
  return (
    <section aria-label="DNS records" className={classes.section}>
      <Group justify="space-between" mb="xs">
        <Title order={2}>DNS records</Title>
        <Copy text={zone} label="Copy as zone file" />
      </Group>
      {identity.provider === 'ses' && identity.state === 'registering' && (
        <Text size="sm" c="dimmed" mb="xs">
          Amazon SES is still registering the domain. Its DKIM records will appear here automatically.
        </Text>
      )}
      <table className={classes.records}>
        <thead>
          <tr>
            <th scope="col">Purpose</th>
            <th scope="col">Type</th>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            <th scope="col">Status</th>
          </tr>
        </thead>
        <tbody>
          {records.map((record) => (
            <Row key={`${record.type} ${record.name}`} record={record} />
          ))}
        </tbody>
      </table>
      <details className={classes.zone}>
        <summary>Zone file</summary>
        <pre>{zone}</pre>
      </details>
    </section>
  )
}

function Row({ record: { purpose, type, name, value, status } }: { record: DnsRecord }) {
  const [label, note] = purposes[purpose]
  return (
    <tr>
      <th scope="row">
        {label} <span className={classes.remark}>{note}</span>
      </th>
      <td>{type}</td>
      <td>
        <Copyable text={name} of={`name of ${label} record ${name}`} />
      </td>
      <td>
        <Copyable text={value} of={`value of ${label} record ${name}`} />
      </td>
      <td>
        <Status value={status} />
      </td>
    </tr>
  )
}

function Copyable({ text, of }: { text: string; of: string }) {
  return (
    <div className={classes.copyable}>
      <code>{text}</code>
      <Copy text={text} of={of} />
    </div>
  )
}

const pendingPollMs = 3000
const settledPollMs = 15_000

/** Polls a domain, more often while DNS or the provider is pending. */
export const useDomain = (projectId: number, id: number) =>
  useOne(
    'domains.show',
    { project_id: projectId, id },
    { pollMs: (domain) => (domain && isSettled(domain) ? settledPollMs : pendingPollMs) },
  )

const isSettled = ({ status, identity, dns_records }: Domain): boolean =>
  status === 'verified' &&
  identity.state === 'registered' &&
  dns_records.every(
    ({ purpose, status: recordStatus }) =>
      recordStatus === 'verified' || purpose === 'mx' || purpose === 'dmarc',
  )

/** After a change: the records for the customer to publish. */
export function RecordsToPublish({ domain: { project_id, id } }: { domain: Domain }) {
  const query = useDomain(project_id, id)
  return (
    <QueryState query={query}>
      {({ data }) => (
        <>
          <Text size="sm">
            Publish these DNS records for {data.name}. They are also shown on the domain’s page.
          </Text>
          <DnsRecords domain={data} />
        </>
      )}
    </QueryState>
  )
}
