import { Group, Text, Title } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { Answer } from '../../api/client.ts'
import type { DnsRecord, Domain } from '../../api/operations.gen.ts'
import { Copy } from '../../components/copy.tsx'
import { QueryState } from '../../components/states.tsx'
import type { Tone } from '../../components/tone.ts'
import { DnsHostFields, useDnsHost } from './dns-host-fields.tsx'
import type { Entry } from './dns-hosts.ts'
import classes from './dns-records.module.css'
import { zoneOf } from './zone.ts'

const purposes: Record<DnsRecord['purpose'], [name: string, remark: string]> = {
  ownership: ['Ownership', 'required'],
  dkim: ['DKIM', 'required'],
  return_path: ['Return path', 'required'],
  mx: ['MX', 'for inbound mail'],
  dmarc: ['DMARC', 'recommended'],
}

/** The DNS records to publish: in the words of the customer's DNS host one by one, or together as a zone file. */
export function DnsRecords({ domain: { name, dns_records: records, identity } }: { domain: Domain }) {
  const host = useDnsHost(name)
  const { nameField, valueField } = host.host
  const zoneFile = zoneOf(records)
  const required = records.filter(({ purpose }) => purpose !== 'mx' && purpose !== 'dmarc')
  const found = required.filter(({ status }) => status === 'verified').length
  return (
    <section aria-label="DNS records" className={classes.section}>
      <Group justify="space-between" mb="xs">
        <Group gap="sm" align="baseline">
          <Title order={2}>DNS records</Title>
          <Text size="sm" c="dimmed" role="status">
            {found} of {required.length} required records found
          </Text>
        </Group>
        <Copy text={zoneFile} label="Copy as zone file" />
      </Group>
      {identity.provider === 'ses' && identity.state === 'registering' && (
        <Text size="sm" c="dimmed" mb="xs">
          Amazon SES is still registering the domain. Its DKIM records will appear here automatically.
        </Text>
      )}
      <DnsHostFields {...host} />
      <table className={classes.records} data-fields={typeof valueField !== 'string' || undefined}>
        <thead>
          <tr>
            <th scope="col">Purpose</th>
            <th scope="col">Type</th>
            <th scope="col">{nameField}</th>
            <th scope="col">{typeof valueField === 'string' ? valueField : 'Value'}</th>
            <th scope="col">Status</th>
          </tr>
        </thead>
        <tbody>
          {records.map((record) => (
            <Row key={`${record.type} ${record.name}`} record={record} entry={host.entryOf(record)} />
          ))}
        </tbody>
      </table>
      <details className={classes.zone}>
        <summary>Zone file</summary>
        <pre>{zoneFile}</pre>
      </details>
    </section>
  )
}

function Row({ record: { purpose, type, name, status }, entry }: { record: DnsRecord; entry: Entry }) {
  const [label, note] = purposes[purpose]
  return (
    <tr data-status={status}>
      <th scope="row">
        {label} <span className={classes.remark}>{note}</span>
      </th>
      <td>{type}</td>
      <td>
        <Copyable field={entry.nameField} text={entry.name} of={`name of ${label} record ${name}`} />
      </td>
      <td>
        {entry.priority !== undefined && (
          <Copyable field="Priority" text={entry.priority} of={`priority of ${label} record ${name}`} />
        )}
        <Copyable field={entry.valueField} text={entry.value} of={`value of ${label} record ${name}`} />
      </td>
      <td>
        <RecordStatus of={status} />
      </td>
    </tr>
  )
}

/** The field's name is shown where the table has no columns. */
function Copyable({ field, text, of }: { field: string; text: string; of: string }) {
  return (
    <div className={classes.copyable}>
      <span className={classes.field}>{field}</span>
      {text === '' ? (
        <span className={classes.remark}>leave empty</span>
      ) : (
        <>
          <code>{text}</code>
          <Copy text={text} of={of} />
        </>
      )}
    </div>
  )
}

const recordStatuses: Record<DnsRecord['status'], [text: string, tone: Tone, path: string]> = {
  verified: ['Found', 'good', 'M5 12.5 10 17.5 19 7'],
  pending: ['Not found yet', 'calm', 'M12 7v5l3 2M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17z'],
  failed: ['Missing or different', 'bad', 'M6.5 6.5 17.5 17.5M17.5 6.5 6.5 17.5'],
}

function RecordStatus({ of: status }: { of: DnsRecord['status'] }) {
  const [text, tone, path] = recordStatuses[status]
  return (
    <span className={classes.status} data-tone={tone}>
      <svg viewBox="0 0 24 24" width="15" height="15" aria-hidden="true">
        <path d={path} />
      </svg>
      {text}
    </span>
  )
}

const pendingPollMs = 3000
const settledPollMs = 15_000

/** The polling interval of a domain: shorter while DNS or the provider is pending. */
export const domainPollMs = (domain: Domain | undefined): number =>
  domain && isSettled(domain) ? settledPollMs : pendingPollMs

const isSettled = ({ status, identity, dns_records }: Domain): boolean =>
  status === 'verified' &&
  identity.state === 'registered' &&
  dns_records.every(
    ({ purpose, status: recordStatus }) =>
      recordStatus === 'verified' || purpose === 'mx' || purpose === 'dmarc',
  )

/** After a change: the records for the customer to publish. */
export function RecordsToPublish({ query }: { query: UseQueryResult<Answer<Domain>> }) {
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
