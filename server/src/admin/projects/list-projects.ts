import Type from 'typebox'
import { listProjects, projectView } from '../../core/projects/projects.ts'
import { Project } from '../../core/projects/wire.ts'
import { Id } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'
import { listed, listOf, PageQuery, pageOf } from '../page.ts'
import { NoParams } from '../parameters.ts'

export const listProjectsQuery = adminQuery({
  id: 'projects.list',
  path: '/admin/projects',
  summary: 'List projects',
  description: 'Projects, newest first.',
  params: NoParams,
  query: {
    ...PageQuery,
    q: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Part of the name.' })),
    locked: Type.Optional(Type.Boolean({ description: 'Only locked ones, or only the others.' })),
    plan_id: Type.Optional({ ...Id, description: 'The plan in force.' }),
  },
  answer: listOf(Project),
  async run({ db, query }) {
    const page = pageOf(query)
    const { q, locked, plan_id: planId } = query
    const fetch = (limit: number) =>
      db.read((tx) =>
        listProjects(tx, { q, locked, planId, limit, beforeId: page.lastId ?? Number.MAX_SAFE_INTEGER }),
      )
    return { answer: await listed(page, fetch, projectView) }
  },
})
