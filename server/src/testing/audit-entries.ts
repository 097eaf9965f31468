import { type AuditEntry, recordAudit, shell } from '../core/audit/record.ts'
import type { Db } from '../platform/db/db.ts'

const ada = { userId: 1, email: 'ada@example.com', ip: '192.0.2.1', userAgent: 'Mozilla/5.0 (Test)' }

/** An ordinary edit, but for what is given. */
export const auditEntry = (given: Partial<AuditEntry> = {}): AuditEntry => ({
  actor: ada,
  requestId: '0198f2a4-0000-7000-8000-000000000001',
  operation: 'projects.edit',
  projectId: 7,
  change: { resource: 'project', id: 7, before: { name: 'Old' }, after: { name: 'New' } },
  related: [],
  reason: null,
  limitException: null,
  subject: null,
  ...given,
})

const member = (before: object | null, after: object | null) => ({ resource: 'member', id: 3, before, after })

/** One row of every kind there is: each column filled and empty, on several chains. */
export const everyKind: AuditEntry[] = [
  auditEntry(),
  auditEntry({ reason: 'asked by the customer, ticket 12' }),
  auditEntry({ actor: shell('postern secrets rewrap'), projectId: null, operation: 'secrets.rewrap' }),
  auditEntry({
    projectId: null,
    operation: 'plans.create',
    change: {
      resource: 'plan',
      id: 2,
      before: null,
      after: { price: 9.99, max_domains: 3, tiny: 1e-7, huge: 1e21 },
    },
  }),
  auditEntry({
    projectId: 8,
    operation: 'members.create',
    change: member(null, { role: 'viewer' }),
    subject: { email: 'bob@example.com', name: 'Bob' },
    limitException: { limit: 'max_users', value: 3, count: 4 },
    reason: 'a trial',
  }),
  auditEntry({
    projectId: 8,
    operation: 'members.delete',
    change: member({ role: 'viewer', nothing: null, list: [1, 'two', { three: 3 }] }, null),
    related: [{ resource: 'project', id: 8, before: { user_id: 1 }, after: { user_id: 2 } }],
    subject: { email: 'carol@example.com', name: null },
    reason: 'left; „Grüße“ \u2028 𝒳',
  }),
  auditEntry({
    projectId: 8,
    actor: { userId: 2, email: 'dan@example.com', ip: null, userAgent: null },
    operation: 'messages.cancel',
    change: {
      resource: 'message',
      id: '0198f2a4-7777-7000-8000-000000000001',
      before: { 10: 'ten', 9: 'nine', a: '' },
      after: {},
    },
  }),
]

/** Each in a transaction of its own, as in life. */
export async function recordEach(db: Db, entries: AuditEntry[]): Promise<void> {
  for (const entry of entries) await db.transaction((tx) => recordAudit(tx, entry))
}
