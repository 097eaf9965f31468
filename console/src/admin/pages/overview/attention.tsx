import { Group, Title } from '@mantine/core'
import type { Overview } from '../../../api/operations.gen.ts'
import { Badge } from '../../../components/badge.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, Rows } from '../../../components/list.tsx'
import { number } from '../../../components/numbers.ts'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import type { Tone } from '../../../components/tone.ts'
import { kinds } from '../../../resources/interventions/kinds.ts'

type Entry = Overview['attention']['newest'][number] & { id: string }
type Cause = Entry['cause']

const causes: Record<Cause, { label: string; tone: Tone; text: (detail: string) => string }> = {
  appeal: { label: 'appeal', tone: 'bad', text: (kind) => `Appeal against the ${nounOf(kind)}` },
  intervention: { label: 'intervention', tone: 'warn', text: (kind) => `In force: ${nounOf(kind)}` },
  firing: { label: 'policy fired', tone: 'warn', text: (policy) => policy },
  domain_failing: { label: 'domain failing', tone: 'bad', text: (domain) => domain },
  over_plan: { label: 'over plan', tone: 'calm', text: (usage) => usage },
}

const nounOf = (kind: string): string => (kinds as Record<string, { noun: string }>)[kind]?.noun ?? kind

/** More are not counted. */
const maxCounted = 999

const columns: Column<Entry>[] = [
  {
    title: 'Project',
    cell: ({ project_id, project_name }) => (
      <To to="/projects/$projectId" params={{ projectId: String(project_id) }}>
        {project_name}
      </To>
    ),
  },
  {
    title: 'Cause',
    cell: (entry) => (
      <Group gap="xs">
        <Badge tone={causes[entry.cause].tone}>{causes[entry.cause].label}</Badge>
        <Detail {...entry} />
      </Group>
    ),
  },
  { title: 'Since', cell: ({ since }) => <RelativeTime at={since} /> },
]

/** Links to where the cause can be dealt with. */
function Detail({ cause, project_id, resource_id, detail }: Entry) {
  if (detail === null) return null
  const text = causes[cause].text(detail)
  const projectId = String(project_id)
  if (cause === 'firing') {
    return (
      <To to="/projects/$projectId/sending" params={{ projectId }} inherit>
        {text}
      </To>
    )
  }
  if (cause === 'domain_failing') {
    return (
      <To to="/projects/$projectId/domains/$id" params={{ projectId, id: String(resource_id) }} inherit>
        {text}
      </To>
    )
  }
  return <span>{text}</span>
}

/** Projects that need attention, the newest first. */
export function Attention({ attention: { counts, newest } }: { attention: Overview['attention'] }) {
  const counted = (Object.keys(causes) as Cause[]).filter((cause) => counts[cause] > 0)
  return (
    <section>
      <Group mb="sm" gap="xs">
        <Title order={2}>Needs attention</Title>
        {counted.map((cause) => (
          <Badge key={cause} tone={causes[cause].tone}>
            {causes[cause].label}: {counts[cause] > maxCounted ? `${maxCounted}+` : number(counts[cause])}
          </Badge>
        ))}
      </Group>
      {newest.length === 0 ? (
        <Empty title="No project needs attention">
          Appeals, failing domains and firings of policies appear here.
        </Empty>
      ) : (
        <Rows
          label="Projects that need attention"
          rows={newest.map((entry) => ({ ...entry, id: `${entry.project_id} ${entry.cause}` }))}
          columns={columns}
        />
      )}
    </section>
  )
}
