import { Button, Group, Select, SimpleGrid, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { newIdempotencyKey } from '../../../act/idempotency-key.ts'
import { call } from '../../../api/client.ts'
import type { Domain } from '../../../api/operations.gen.ts'
import { useAnswer, useOne } from '../../../api/queries.ts'
import { useMe } from '../../../api/session.ts'
import { AddressField } from '../../../components/address-field.tsx'
import { Can } from '../../../components/can.tsx'
import { Failure } from '../../../components/failure.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { Empty, QueryState } from '../../../components/states.tsx'
import { Journey } from './journey.tsx'

const route = getRouteApi('/projects/$projectId/send')

/** A test message from a verified domain, and what happens to it. The id is in the URL, so that a reload keeps it. */
export function SendPage() {
  const projectId = Number(route.useParams().projectId)
  const { message } = route.useSearch()
  const domains = useAnswer('customer.domains.list', {
    path: { project_id: projectId },
    query: { limit: 200 },
  })
  return (
    <>
      <PageHead
        title="Send a test"
        below="A real message, sent like all others. It counts toward the quota."
      />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
        <QueryState query={domains} rows={8}>
          {({ data }) => (
            <SendForm projectId={projectId} domains={data.filter(({ status }) => status === 'verified')} />
          )}
        </QueryState>
        {message !== undefined && <Journey key={message} projectId={projectId} id={message} />}
      </SimpleGrid>
    </>
  )
}

function SendForm({ projectId, domains }: { projectId: number; domains: Domain[] }) {
  const navigate = route.useNavigate()
  const me = useMe()
  const project = useOne('customer.projects.show', { project_id: projectId })
  const [edits, setEdits] = useState<Partial<ReturnType<typeof defaults>>>({})
  const [idempotencyKey, setIdempotencyKey] = useState(newIdempotencyKey)
  const form = { ...defaults(domains, me.email, project.data?.data.name), ...edits }
  const edit = (part: typeof edits) => {
    setEdits({ ...edits, ...part })
    setIdempotencyKey(newIdempotencyKey())
  }
  const sending = useMutation({
    mutationFn: () =>
      call('customer.messages.send', {
        path: { project_id: projectId },
        body: {
          from: `${form.local}@${form.domain}`,
          to: [form.to.trim()],
          subject: form.subject,
          text: form.text,
          tags: ['test'],
        },
        idempotencyKey,
      }),
    onSuccess: ({ id }) => {
      setIdempotencyKey(newIdempotencyKey())
      void navigate({ search: { message: id }, replace: true })
    },
  })
  if (domains.length === 0) {
    return (
      <Empty title="No verified domain">
        A message needs a sender’s domain whose DNS records are published.
        <Button component={Link} to={`/projects/${projectId}/start`} mt="sm" display="block">
          Set up sending
        </Button>
      </Empty>
    )
  }
  return (
    <Can
      change="customer.messages.send"
      otherwise={<Text c="dimmed">Your role in the project does not allow sending.</Text>}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (!sending.isPending) sending.mutate()
        }}
      >
        <Stack>
          {domains.length > 1 && (
            <Select
              label="Domain"
              value={form.domain}
              onChange={(domain) => domain !== null && edit({ domain })}
              data={domains.map(({ name }) => name)}
              allowDeselect={false}
              searchable
            />
          )}
          <AddressField
            label="From"
            domain={form.domain}
            local={form.local}
            onChange={(local) => edit({ local })}
          />
          <TextInput
            label="To"
            type="email"
            value={form.to}
            onChange={(event) => edit({ to: event.currentTarget.value })}
            maxLength={320}
            autoComplete="off"
            spellCheck={false}
            required
          />
          <TextInput
            label="Subject"
            value={form.subject}
            onChange={(event) => edit({ subject: event.currentTarget.value })}
            maxLength={998}
          />
          <Textarea
            label="Text"
            value={form.text}
            onChange={(event) => edit({ text: event.currentTarget.value })}
            minRows={4}
            maxRows={12}
            autosize
          />
          <Failure of={sending.error} />
          <Group>
            <Button type="submit" loading={sending.isPending}>
              Send
            </Button>
          </Group>
        </Stack>
      </form>
    </Can>
  )
}

const defaults = ([first]: Domain[], to: string, project = 'this project') => ({
  local: 'hello',
  domain: first?.name ?? '',
  to,
  subject: `Test from ${project}`,
  text: `This is a test message from ${project}.`,
})
