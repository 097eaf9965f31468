import type { Member } from '../../api/operations.gen.ts'
import { useAnswer } from '../../api/queries.ts'

/** The members of a project, for their names. */
export const useMembers = (projectId: number): Member[] =>
  useAnswer('customer.members.list', { path: { project_id: projectId }, query: { limit: 200 } }).data?.data ??
  []
