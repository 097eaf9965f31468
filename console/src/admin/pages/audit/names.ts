import { useAnswer, useMany } from '../../../api/queries.ts'
import { usePolicies } from '../policies/policies.ts'
import { type Entry, type Names, usersIn } from './sentences.ts'

/** The names of resources that audit entries refer to by id. Each name is loaded once. */
export function useNames(entries: Entry[]): Names {
  const userIds = new Set(entries.flatMap(usersIn))
  // An entry about a project contains the project's name.
  const withoutName = entries.filter(({ resource_type }) => resource_type !== 'project')
  const projectIds = new Set(withoutName.flatMap(({ project_id }) => project_id ?? []))
  const users = useMany(
    'users.show',
    [...userIds].map((id) => ({ id })),
  )
  const projects = useMany(
    'projects.show',
    [...projectIds].map((project_id) => ({ project_id })),
  )
  const plans = useAnswer('plans.list', { query: { limit: 200 } })
  const policies = usePolicies()
  return {
    user: (wanted) => {
      const user = users.find(({ id }) => id === wanted)
      return user && (user.name || user.email)
    },
    project: (wanted) => projects.find(({ id }) => id === wanted)?.name,
    plan: (wanted) => plans.data?.data.find(({ id }) => id === wanted)?.name,
    policy: (wanted) => policies.data?.data.find(({ id }) => id === wanted)?.name,
  }
}
