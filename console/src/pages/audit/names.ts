import { useAnswer, useMany } from '../../api/queries.ts'
import { type Entry, type Names, usersIn } from './sentences.ts'

/** Names that rows of the audit speak of and do not hold. Each is asked for once. */
export function useNames(entries: Entry[]): Names {
  const userIds = new Set(entries.flatMap(usersIn))
  // A row about a project tells what the project was called.
  const ofProjects = entries.filter(({ resource_type }) => resource_type !== 'project')
  const projectIds = new Set(ofProjects.flatMap(({ project_id }) => project_id ?? []))
  const users = useMany(
    'users.show',
    [...userIds].map((id) => ({ id })),
  )
  const projects = useMany(
    'projects.show',
    [...projectIds].map((project_id) => ({ project_id })),
  )
  const plans = useAnswer('plans.list', { query: { limit: 200 } })
  return {
    user: (wanted) => {
      const user = users.find(({ id }) => id === wanted)
      return user && (user.name || user.email)
    },
    project: (wanted) => projects.find(({ id }) => id === wanted)?.name,
    plan: (wanted) => plans.data?.data.find(({ id }) => id === wanted)?.name,
  }
}
