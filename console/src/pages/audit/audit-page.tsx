import { Tabs } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { PageHead } from '../../components/page-head.tsx'
import { ExportButton } from './export-button.tsx'
import { Filters } from './filters.tsx'
import { Refusals } from './refusals.tsx'
import { type AuditSearch, Timeline } from './timeline.tsx'
import { Verification } from './verification.tsx'

const route = getRouteApi('/audit')

/** Everything that administrators did, everywhere. */
export function AuditPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const ask = (part: Partial<AuditSearch>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })
  const setCursor = (cursor: string | undefined) => void navigate({ search: { ...search, cursor } })
  return (
    <>
      <PageHead title="Audit">
        <ExportButton />
      </PageHead>
      <Verification />
      <Tabs
        value={search.view ?? 'acts'}
        onChange={(view) => void navigate({ search: view === 'refusals' ? { view } : {} })}
        keepMounted={false}
      >
        <Tabs.List aria-label="Acts and refusals" mb="md">
          <Tabs.Tab value="acts">Acts</Tabs.Tab>
          <Tabs.Tab value="refusals">Refusals</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="acts">
          <Filters search={search} ask={ask} hasProject />
          <Timeline search={search} setCursor={setCursor} />
        </Tabs.Panel>
        <Tabs.Panel value="refusals">
          <Refusals search={search} ask={ask} setCursor={setCursor} />
        </Tabs.Panel>
      </Tabs>
    </>
  )
}
