import Type from 'typebox'
import { AuditEntryView, auditView, searchAudit } from '../../core/control/audit/audit.ts'
import { shellOperations, systemOperations } from '../../core/control/audit/unattended-operations.ts'
import { PageQuery, pageOf, scanPage, searchOf } from '../../core/shared/pages.ts'
import { timeRangeOf, timeRangeQuery } from '../../core/shared/time-range.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'
import { auditedResources } from './audited.ts'

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
      ...timeRangeQuery('Entries'),
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
        ...timeRangeOf(query),
        limit,
        beforeId: lastId,
      }
      const found = await db.read((tx) => searchAudit(tx, wanted))
      return { answer: scanPage(found, auditView) }
    },
  })
