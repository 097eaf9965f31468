import { Group, SimpleGrid, Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { ExplanationForAdministrators } from '../../api/operations.gen.ts'
import { useAnswer } from '../../api/queries.ts'
import { Badge } from '../../components/badge.tsx'
import { ExactInput } from '../../components/exact-input.tsx'
import { QueryState } from '../../components/states.tsx'
import type { Tone } from '../../components/tone.ts'
import classes from './checks.module.css'

const route = getRouteApi('/projects/$projectId/sending')

type Check = ExplanationForAdministrators['checks'][number]

const labels: Record<Check['name'], string> = {
  project_lock: 'Project lock',
  subscription: 'Subscription',
  sender_domain: 'Sender domain',
  provider: 'Provider',
  message: 'Addresses',
  suppression: 'Suppressed addresses',
  quota: 'Quota',
}

const tones: Record<Check['result'], Tone> = { passed: 'good', failed: 'bad', unknown: 'calm' }

const outcomes: Record<ExplanationForAdministrators['outcome'], string> = {
  accepted: 'This message would be accepted.',
  suppressed: 'This message would be accepted, but not sent to this recipient.',
  refused: 'This message would be refused.',
}

/** Every check that a message would have to pass now. The addresses are in the URL. */
export function Checks({ projectId }: { projectId: number }) {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const path = { project_id: projectId }
  const domains = useAnswer('domains.list', { path, query: { limit: 200 } })
  const domain = domains.data?.data.find(({ status }) => status === 'verified') ?? domains.data?.data[0]
  const from = search.from ?? `hello@${domain?.name ?? 'example.com'}`
  const to = search.to ?? 'someone@example.net'
  const query = useAnswer('sending.explain', { path, query: { from, to } }, { isEnabled: domains.isFetched })
  return (
    <section>
      <Title order={3} mb="sm">
        Would a message be accepted?
      </Title>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm" mb="sm">
        <ExactInput
          label="From"
          value={from}
          onCommit={(value) => void navigate({ search: { ...search, from: value } })}
          maxLength={320}
        />
        <ExactInput
          label="To"
          value={to}
          onCommit={(value) => void navigate({ search: { ...search, to: value } })}
          maxLength={320}
        />
      </SimpleGrid>
      <QueryState query={query} rows={7}>
        {({ outcome, checks }) => (
          <>
            <Text size="sm" fw={600} mb="xs" role="status">
              {outcomes[outcome]}
            </Text>
            <ul className={classes.checks} aria-label="Checks">
              {checks.map(({ name, result, message }) => (
                <li key={name}>
                  <Group justify="space-between" wrap="nowrap">
                    <strong>{labels[name]}</strong>
                    <Badge tone={tones[result]}>{result}</Badge>
                  </Group>
                  {message}
                </li>
              ))}
            </ul>
          </>
        )}
      </QueryState>
    </section>
  )
}
