import { SimpleGrid, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useAnswer } from '../../../api/queries.ts'
import { ExactInput } from '../../../components/exact-input.tsx'
import { QueryState } from '../../../components/states.tsx'
import { CheckList } from '../../../resources/sending/check-list.tsx'

const route = getRouteApi('/projects/$projectId/sending')

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
        {(explanation) => <CheckList explanation={explanation} />}
      </QueryState>
    </section>
  )
}
