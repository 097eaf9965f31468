import { Navigate } from '@tanstack/react-router'
import { useAnswer } from '../../../api/queries.ts'
import { useInstallation } from '../../../components/installation.ts'
import { QueryState } from '../../../components/states.tsx'

/** Opens the user's only project, the list of projects or, for a new customer, the first steps. */
export function StartPage() {
  const projects = useAnswer('customer.projects.list', { query: { limit: 2 } })
  const installation = useInstallation()
  return (
    <QueryState query={projects}>
      {({ data: [first, second] }) => {
        if (first && !second) {
          const params = { projectId: String(first.id) }
          return <Navigate to="/projects/$projectId" params={params} replace />
        }
        if (first) return <Navigate to="/projects" replace />
        return (
          <QueryState query={installation}>
            {({ customers_create_projects: mayCreate }) => (
              <Navigate to={mayCreate ? '/start' : '/projects'} replace />
            )}
          </QueryState>
        )
      }}
    </QueryState>
  )
}
