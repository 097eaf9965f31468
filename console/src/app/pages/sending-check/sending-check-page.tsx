import { SimpleGrid, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useAnswer } from '../../../api/queries.ts'
import { useMe } from '../../../api/session.ts'
import { ExactInput } from '../../../components/exact-input.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { QueryState } from '../../../components/states.tsx'
import { NoticeAlert } from '../../../resources/interventions/notice-alert.tsx'
import { CheckList } from '../../../resources/sending/check-list.tsx'

const route = getRouteApi('/projects/$projectId/sending-check')

/** Every check that a message would have to pass now. The addresses are in the URL. */
export function SendingCheckPage() {
  const path = { project_id: Number(route.useParams().projectId) }
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const me = useMe()
  const domains = useAnswer('customer.domains.list', { path, query: { limit: 200 } })
  const domain = domains.data?.data.find(({ status }) => status === 'verified') ?? domains.data?.data[0]
  const from = search.from ?? `hello@${domain?.name ?? 'example.com'}`
  const to = search.to ?? me.email
  const query = useAnswer(
    'customer.sending.explain',
    { path, query: { from, to } },
    { isEnabled: domains.isFetched, pollMs: 10_000 },
  )
  return (
    <>
      <PageHead
        title="Sending check"
        below="Would a message be accepted now? Each check says what would change its result. Nothing is sent."
      />
      <Stack maw={720}>
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm" role="search">
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
          {(explanation) => (
            <>
              {explanation.interventions.map((notice) => (
                <NoticeAlert key={notice.id} notice={notice} />
              ))}
              <CheckList explanation={explanation} />
            </>
          )}
        </QueryState>
      </Stack>
    </>
  )
}
