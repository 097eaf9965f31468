import { findMember, memberView } from '../../core/control/members/members.ts'
import { Member } from '../../core/control/members/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showMember = adminQuery({
  id: 'members.show',
  path: '/admin/projects/:project_id/members/:id',
  summary: 'Show a member',
  description: 'One member or invitation of a project.',
  params: ProjectItemParams,
  query: {},
  answer: Member,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findMember(tx, params.project_id, params.id))
    return { answer: memberView(row), version: row.version }
  },
})
