import { Outlet } from '@tanstack/react-router'
import { useOne } from '../../api/queries.ts'
import { QueryState } from '../../components/states.tsx'
import { useProjectId } from '../components/use-project-id.ts'
import { ByRole } from './by-role.tsx'

/** Around all pages of a project: shows them when the project is known. */
export function ProjectFrame() {
  const projectId = useProjectId()
  const project = useOne('customer.projects.show', { project_id: projectId })
  return (
    <QueryState query={project}>
      {({ data }) => (
        <ByRole key={projectId} project={data}>
          <Outlet />
        </ByRole>
      )}
    </QueryState>
  )
}
