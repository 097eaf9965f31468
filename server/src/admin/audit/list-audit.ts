import Type from 'typebox'
import { AuditEntryView, auditView, searchAudit } from '../../core/control/audit/audit.ts'
import { foundPage, PageQuery, pageOf, searchOf } from '../../core/shared/pages.ts'
import { PosternError } from '../../platform/errors.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const Time = Type.String({ format: 'date-time', examples: ['2026-11-14T00:00:00Z'] })

export const listAuditQuery = adminQuery({
  id: 'audit.list',
  path: '/admin/audit',
  summary: 'Search the audit',
  description: 'Who changed what, when and why: newest first, narrowed by any of the parameters together.',
  params: NoParams,
  query: {
    ...PageQuery,
    project_id: Type.Optional({ ...Id, description: '0 for what belongs to no project.' }),
    actor: Type.Optional({ ...Id, description: "The acting user; 0 is the server's own shell." }),
    operation: Type.Optional(
      Type.String({ maxLength: 100, description: 'What was done.', examples: ['projects.edit'] }),
    ),
    resource: Type.Optional(
      Type.String({
        pattern: '^[a-z_]{1,50}(:[0-9A-Za-z-]{1,50})?$',
        description: 'A kind of resource, or one: `endpoint` or `endpoint:7`.',
      }),
    ),
    from: Type.Optional({ ...Time, description: 'From this moment on.' }),
    to: Type.Optional({ ...Time, description: 'Before this moment.' }),
  },
  answer: searchOf(AuditEntryView),
  async run({ db, query }) {
    const { limit, lastId } = pageOf(query)
    const [type = '', id] = query.resource?.split(':') ?? []
    const wanted = {
      projectId: query.project_id,
      actor: query.actor,
      operation: query.operation,
      resource: query.resource === undefined ? undefined : ([type, id] as [string, string?]),
      from: momentOf(query.from, 'from'),
      to: momentOf(query.to, 'to'),
      limit,
      beforeId: lastId,
    }
    const found = await db.read((tx) => searchAudit(tx, wanted))
    return { answer: foundPage(found, auditView) }
  },
})

function momentOf(text: string | undefined, name: string): Date | undefined {
  if (text === undefined) return undefined
  const moment = new Date(text)
  // A leap second is a time by RFC 3339, but none that can be computed with.
  if (Number.isNaN(moment.getTime()))
    throw new PosternError('invalid_parameter', `"${name}" is no time we know.`)
  return moment
}
