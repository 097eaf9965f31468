import Type from 'typebox'
import { AuditEntryView, auditView, searchAudit } from '../../core/control/audit/audit.ts'
import { shellOperations, systemOperations } from '../../core/control/audit/unattended-operations.ts'
import { PageQuery, pageOf, scanPage, searchOf } from '../../core/shared/pages.ts'
import { PosternError } from '../../platform/errors.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'
import { auditedResources } from './audited.ts'

const Time = Type.String({ format: 'date-time', examples: ['2026-11-14T00:00:00Z'] })

/** `mutations`: the ids of all administrative mutations. */
export const listAuditQuery = (mutations: readonly string[]) =>
  adminQuery({
    id: 'audit.list',
    path: '/admin/audit',
    summary: 'Search the audit log',
    description:
      'Returns audit entries, newest first. Filters can be combined. An unknown `operation` or `resource` type is rejected with `invalid_parameter`.',
    params: NoParams,
    query: {
      ...PageQuery,
      project_id: Type.Optional({ ...Id, description: '0 selects entries that do not belong to a project.' }),
      actor: Type.Optional({
        ...Id,
        description:
          'The id of the user who made the change; 0 selects entries without one, such as changes from the command line.',
      }),
      operation: Type.Optional(
        Type.Enum([...mutations, ...shellOperations, ...systemOperations].sort(), {
          type: 'string',
          description: 'The operation that made the change.',
          examples: ['projects.edit'],
        }),
      ),
      resource: Type.Optional(
        Type.String({
          pattern: `^(${auditedResources.join('|')})(:[0-9A-Za-z-]{1,50})?$`,
          description: 'A resource type or a single resource: `endpoint` or `endpoint:7`.',
        }),
      ),
      from: Type.Optional({ ...Time, description: 'Entries at or after this time.' }),
      to: Type.Optional({ ...Time, description: 'Entries before this time.' }),
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
        from: timestampOf(query.from, 'from'),
        to: timestampOf(query.to, 'to'),
        limit,
        beforeId: lastId,
      }
      const found = await db.read((tx) => searchAudit(tx, wanted))
      return { answer: scanPage(found, auditView) }
    },
  })

function timestampOf(text: string | undefined, name: string): Date | undefined {
  if (text === undefined) return undefined
  const time = new Date(text)
  // RFC 3339 allows a leap second; JavaScript's Date does not.
  if (Number.isNaN(time.getTime()))
    throw new PosternError('invalid_parameter', `"${name}" is not a valid RFC 3339 timestamp.`)
  return time
}
