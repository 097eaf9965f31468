import { getRouteApi } from '@tanstack/react-router'
import { PartHead } from '../../../components/page-head.tsx'
import { EvidenceList } from './evidence.tsx'
import { EvidenceButton } from './evidence-button.tsx'
import { ExportButton } from './export-button.tsx'
import { Filters } from './filters.tsx'
import { type AuditSearch, Timeline } from './timeline.tsx'
import { Verification } from './verification.tsx'

const route = getRouteApi('/projects/$projectId/audit')

/** One project's audit log. */
export function ProjectAudit() {
  const search = route.useSearch()
  const project_id = Number(route.useParams().projectId)
  const navigate = route.useNavigate()
  const setFilter = (part: Partial<AuditSearch>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })
  return (
    <>
      <PartHead title="Audit">
        <EvidenceButton projectId={project_id} />
        <ExportButton projectId={project_id} />
      </PartHead>
      <Verification projectId={project_id} />
      <EvidenceList projectId={project_id} />
      <Filters search={search} setFilter={setFilter} />
      <Timeline
        search={{ ...search, project_id }}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
      />
    </>
  )
}
