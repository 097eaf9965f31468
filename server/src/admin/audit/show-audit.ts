import { AuditEntryView, auditView, findAudit } from '../../core/control/audit/audit.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showAudit = adminQuery({
  id: 'audit.show',
  path: '/admin/audit/:id',
  summary: 'Show an audit entry',
  description:
    'Returns one change: the actor, the time, the reason, the resource before and after, and the position in the hash chain.',
  params: ItemParams,
  query: {},
  answer: AuditEntryView,
  run: async ({ db, params }) => ({ answer: auditView(await db.read((tx) => findAudit(tx, params.id))) }),
})
