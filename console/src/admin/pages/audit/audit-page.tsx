import { Tabs } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { PageHead } from '../../../components/page-head.tsx'
import { Denials } from './denials.tsx'
import { ExportButton } from './export-button.tsx'
import { Filters } from './filters.tsx'
import { Lookups } from './lookups.tsx'
import { type AuditSearch, Timeline } from './timeline.tsx'
import { Verification } from './verification.tsx'

const route = getRouteApi('/audit')

/** The audit log for all projects. */
export function AuditPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const setFilter = (part: Partial<AuditSearch>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })
  const setCursor = (cursor: string | undefined) => void navigate({ search: { ...search, cursor } })
  return (
    <>
      <PageHead title="Audit">
        <ExportButton />
      </PageHead>
      <Verification />
      <Tabs
        value={search.view ?? 'changes'}
        onChange={(view) =>
          void navigate({ search: view === 'denials' || view === 'lookups' ? { view } : {} })
        }
        keepMounted={false}
      >
        <Tabs.List aria-label="Changes, denied requests and lookups" mb="md">
          <Tabs.Tab value="changes">Changes</Tabs.Tab>
          <Tabs.Tab value="denials">Denied requests</Tabs.Tab>
          <Tabs.Tab value="lookups">Lookups</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="changes">
          <Filters search={search} setFilter={setFilter} hasProject />
          <Timeline search={search} setCursor={setCursor} />
        </Tabs.Panel>
        <Tabs.Panel value="denials">
          <Denials search={search} setFilter={setFilter} setCursor={setCursor} />
        </Tabs.Panel>
        <Tabs.Panel value="lookups">
          <Lookups search={search} setFilter={setFilter} setCursor={setCursor} />
        </Tabs.Panel>
      </Tabs>
    </>
  )
}
