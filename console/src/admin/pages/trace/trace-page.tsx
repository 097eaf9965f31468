import { Button, Group, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useLocation, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useRef } from 'react'
import { call } from '../../../api/client.ts'
import type { Trace, TracedMessage } from '../../../api/operations.gen.ts'
import { recordedRead } from '../../../api/queries.ts'
import { Badge, Status } from '../../../components/badge.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { UnreachableCells } from '../../../components/unreachable-cells.tsx'

/** Finds the message that a pasted text refers to. */
export function TracePage() {
  const { traceText: text } = useLocation().state
  const navigate = useNavigate()
  const field = useRef<HTMLTextAreaElement>(null)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const traceText = field.current?.value.trim()
    if (traceText) void navigate({ to: '/trace', state: { traceText } })
  }
  return (
    <>
      <PageHead
        title="Trace"
        below="Finds the message and the project that a report refers to. Traces are recorded under Audit, Lookups."
      />
      <search>
        <form onSubmit={submit}>
          <Textarea
            // Follows the browser history.
            key={text ?? ''}
            ref={field}
            label="Header, report or reference"
            description="A message header, an abuse or delivery report, a Message-ID, a return path, a queue id, or an address with a day"
            defaultValue={text ?? ''}
            maxLength={65_536}
            autosize
            minRows={4}
            maxRows={14}
            autoComplete="off"
            spellCheck={false}
            styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
          />
          <Group mt="sm" mb="lg">
            <Button type="submit">Trace</Button>
          </Group>
        </form>
      </search>
      {text !== undefined && <Result text={text} />}
    </>
  )
}

const matches: Record<TracedMessage['matched_by'], string> = {
  return_path: 'Signed return path',
  message_id: 'Message-ID',
  queue_id: 'Queue id',
  recipient: 'Recipient',
}

/** Narrow columns are not broken within a word. */
const unbroken = { overflowWrap: 'break-word' } as const

const columns: Column<TracedMessage & { id: string }>[] = [
  {
    title: 'Message',
    cell: ({ message_id, project_id, recipient }) => (
      <To
        to="/projects/$projectId/messages/$id"
        params={{ projectId: String(project_id), id: message_id }}
        style={{ overflowWrap: 'anywhere' }}
      >
        {recipient ? `To ${recipient.address}` : message_id}
      </To>
    ),
  },
  {
    title: 'Match',
    cell: ({ is_certain, matched_by }) => (
      <>
        <Badge tone={is_certain ? 'good' : 'warn'}>{is_certain ? 'certain' : 'guess'}</Badge>
        <Text size="sm" c="dimmed" style={unbroken}>
          {matches[matched_by]}
        </Text>
      </>
    ),
  },
  {
    title: 'Project',
    cell: ({ project_id, project_name }) => (
      <>
        <To to="/projects/$projectId" params={{ projectId: String(project_id) }}>
          {project_name ?? `project ${project_id}`}
        </To>
        <Text size="sm" component="div" style={unbroken}>
          <To
            to="/projects/$projectId/sending"
            params={{ projectId: String(project_id) }}
            hash="interventions"
            inherit
          >
            Interventions
          </To>
        </Text>
      </>
    ),
  },
  {
    title: 'Status',
    isExtra: true,
    cell: ({ recipient }) => recipient && <Status value={recipient.status} />,
  },
  { title: 'Accepted', isExtra: true, cell: ({ created_at }) => <ExactTime at={created_at} /> },
]

function Result({ text }: { text: string }) {
  const query = useQuery({
    queryKey: ['trace.find', text],
    queryFn: async ({ signal }) => pageOf(await call('trace.find', { body: { text }, signal })),
    ...recordedRead,
  })
  const isGuess = query.data?.data.some(({ is_certain }) => !is_certain)
  return (
    <>
      <UnreachableCells names={query.data?.unreachable_cells ?? []} />
      {isGuess && (
        <Text size="sm" c="dimmed" mb="sm">
          Only signed references are certain. Everything else can be written by anyone: compare the message
          before you act.
        </Text>
      )}
      <List
        label="Traced messages"
        query={query}
        columns={columns}
        cursor={undefined}
        setCursor={() => undefined}
        empty={
          <Empty title="No message found">
            The text contains no reference to a message, or the message is older than the retention period.
          </Empty>
        }
      />
    </>
  )
}

const pageOf = ({ data, unreachable_cells }: Trace) => ({
  data: data.map((found) => ({ ...found, id: `${found.message_id} ${found.recipient?.no}` })),
  next_cursor: null,
  unreachable_cells,
})
