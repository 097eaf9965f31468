import { Text, Title } from '@mantine/core'
import type { Overview } from '../../../api/operations.gen.ts'
import { Badge } from '../../../components/badge.tsx'
import { type Column, Rows } from '../../../components/list.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'

type Process = Overview['processes'][number]

const columns: Column<Process>[] = [
  {
    title: 'Process',
    cell: ({ kind, cell }) => (
      <>
        <code>postern {kind}</code>
        {cell !== null && (
          <Text size="sm" c="dimmed">
            cell {cell}
          </Text>
        )}
      </>
    ),
  },
  { title: 'Host', cell: ({ host }) => host },
  { title: 'Version', isExtra: true, cell: ({ version }) => version },
  { title: 'Started', isExtra: true, cell: ({ started_at }) => <RelativeTime at={started_at} /> },
  {
    title: 'State',
    cell: ({ is_alive, seen_at }) =>
      is_alive ? (
        <Badge tone="good">running</Badge>
      ) : (
        <>
          <Badge tone="bad">does not respond</Badge> last seen <RelativeTime at={seen_at} />
        </>
      ),
  },
]

export function Processes({ processes }: { processes: Process[] }) {
  return (
    <section>
      <Title order={2} mb="sm">
        Processes
      </Title>
      {processes.length === 0 ? (
        <Empty title="No processes" />
      ) : (
        <Rows label="Processes" rows={processes} columns={columns} />
      )}
    </section>
  )
}
