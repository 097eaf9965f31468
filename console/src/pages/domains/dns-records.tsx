import { Group, Text, Title } from '@mantine/core'
import type { DnsRecord, Domain } from '../../api/operations.gen.ts'
import { useOne } from '../../api/queries.ts'
import { Status } from '../../components/badge.tsx'
import { Copy } from '../../components/copy.tsx'
import { Asked } from '../../components/states.tsx'
import classes from './dns-records.module.css'
import { zoneOf } from './zone.ts'

const purposes: Record<DnsRecord['purpose'], [name: string, remark: string]> = {
  ownership: ['Ownership', 'needed'],
  dkim: ['DKIM', 'needed'],
  return_path: ['Return path', 'needed'],
  mx: ['MX', 'only to receive mail'],
  dmarc: ['DMARC', 'advised'],
}

/** What the customer has to publish, each copyable by itself and all of them as lines of a zone file. */
export function DnsRecords({ domain: { dns_records: records, identity } }: { domain: Domain }) {
  const zone = zoneOf(records)
  return (
    <section aria-label="DNS records" className={classes.section}>
      <Group justify="space-between" mb="xs">
        <Title order={2}>DNS records</Title>
        <Copy text={zone} label="Copy all as a zone snippet" />
      </Group>
      {identity.provider === 'ses' && identity.state === 'registering' && (
        <Text size="sm" c="dimmed" mb="xs">
          Amazon SES is still registering the name. Its DKIM records appear here by themselves.
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
        <summary>The zone snippet</summary>
        <pre>{zone}</pre>
      </details>
    </section>
  )
}

function Row({ record: { purpose, type, name, value, status } }: { record: DnsRecord }) {
  const [called, remark] = purposes[purpose]
  return (
    <tr>
      <th scope="row">
        {called} <span className={classes.remark}>{remark}</span>
      </th>
      <td>{type}</td>
      <td>
        <Copyable text={name} of={`name of ${called} record ${name}`} />
      </td>
      <td>
        <Copyable text={value} of={`value of ${called} record ${name}`} />
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

const aMomentMs = 3000
const aWhileMs = 15_000

/** A domain that is watched: what DNS and the provider say of it comes in by itself. */
export const useDomain = (projectId: number, id: number) =>
  useOne(
    'domains.show',
    { project_id: projectId, id },
    { everyMs: (domain) => (domain && isSettled(domain) ? aWhileMs : aMomentMs) },
  )

const isSettled = ({ status, identity, dns_records }: Domain): boolean =>
  status === 'verified' &&
  identity.state === 'registered' &&
  dns_records.every(
    ({ purpose, status: seen }) => seen === 'verified' || purpose === 'mx' || purpose === 'dmarc',
  )

/** After a change: the records as they are to be handed to the customer. */
export function RecordsToPublish({ domain: { project_id, id } }: { domain: Domain }) {
  const query = useDomain(project_id, id)
  return (
    <Asked query={query}>
      {({ data }) => (
        <>
          <Text size="sm">
            Hand these to whoever keeps the DNS of {data.name}. They stay on the page of the domain.
          </Text>
          <DnsRecords domain={data} />
        </>
      )}
    </Asked>
  )
}
