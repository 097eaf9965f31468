import { Group, Select, Text } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { useState } from 'react'
import type { DnsRecord } from '../../api/operations.gen.ts'
import {
  type DnsHost,
  type DnsHostId,
  dnsHosts,
  type Entry,
  entryOf,
  likelyZoneOf,
  zonesOf,
} from './dns-hosts.ts'
import classes from './dns-records.module.css'

interface DnsHostChoice {
  id: DnsHostId
  host: DnsHost
  setHost: (id: DnsHostId) => void
  zone: string
  zones: string[]
  setZone: (zone: string) => void
  entryOf: (record: DnsRecord) => Entry
}

/** The DNS host is kept in the browser: most people use only one. */
export function useDnsHost(domain: string): DnsHostChoice {
  const [id, setHost] = useLocalStorage<DnsHostId>({
    key: 'postern-dns-host',
    defaultValue: 'other',
    getInitialValueInEffect: false,
    serialize: (value) => value,
    deserialize: (value) =>
      value !== undefined && Object.hasOwn(dnsHosts, value) ? (value as DnsHostId) : 'other',
  })
  const zones = zonesOf(domain)
  const [chosen, setZone] = useState<string>()
  const zone = chosen !== undefined && zones.includes(chosen) ? chosen : likelyZoneOf(domain)
  const host: DnsHost = dnsHosts[id]
  return { id, host, setHost, zone, zones, setZone, entryOf: (record) => entryOf(record, host, zone) }
}

/** Where the records are published, and how. */
export function DnsHostFields({ id, host, setHost, zone, zones, setZone }: DnsHostChoice) {
  return (
    <Group align="flex-end" gap="sm" className={classes.hosts ?? ''}>
      <Select
        label="DNS host"
        value={id}
        onChange={(chosen) => chosen !== null && setHost(chosen as DnsHostId)}
        data={Object.entries(dnsHosts).map(([value, { label }]) => ({ value, label }))}
        allowDeselect={false}
        w={230}
      />
      {host.apex !== undefined && zones.length > 1 && (
        <Select
          label="Domain at the host"
          value={zone}
          onChange={(chosen) => chosen !== null && setZone(chosen)}
          data={zones}
          allowDeselect={false}
          w={230}
        />
      )}
      <Text size="sm" c="dimmed" flex="1 1 280px">
        {host.steps}
      </Text>
    </Group>
  )
}
