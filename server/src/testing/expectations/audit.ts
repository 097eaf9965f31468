import assert from 'node:assert/strict'
import type { Static } from 'typebox'
import type { Domain } from '../../core/control/domains/wire.ts'
import type { Project } from '../../core/control/projects/wire.ts'
import type { Answer } from '../harness/client.ts'
import type { TestDatabase } from '../harness/database.ts'
import { addressesBeside, withAuditAddresses } from './audit-row.ts'

/** The expected audit row. Absent fields are expected to be null. */
export interface ExpectedRow {
  operation: string
  project_id?: number
  resource: [type: string, id: number]
  reason?: string
  before?: object
  after?: object
  related?: { resource: string; id: number; before: object | null; after: object | null }[]
  limit_exception?: { limit: string; value: number; count: number }
  /** The user who was changed. Personal data is stored outside the row. */
  subject?: { email: string; name: string | null }
}

/** Assertions on one administrator's audit rows. The rows are found by the response's request id. */
export function auditOf(database: TestDatabase, admin: { userId: number; email: string }) {
  return {
    /** Asserts that there is exactly this one row, without personal data in the chain. */
    async assertAudited(
      answer: Answer,
      { resource, subject: person, ...expected }: ExpectedRow,
    ): Promise<void> {
      const rows = await rowsOf(database, answer)
      assert.equal(rows.length, 1, `this request has ${rows.length} audit rows: ${answer.text}`)
      const { kept, whole, actor, subject } = rows[0] ?? assert.fail()
      assert.deepEqual(kept, {
        ...nothing,
        ...expected,
        actor_kind: 'person',
        actor_id: admin.userId,
        resource_type: resource[0],
        resource_id: String(resource[1]),
      })
      assert.deepEqual(actor, { ...nobody, email: admin.email, ip: '127.0.0.1', user_agent: 'node' })
      assert.deepEqual(subject, person ? { ...nobody, ...person } : null)
      for (const text of [admin.email, '127.0.0.1', person?.email, person?.name]) {
        if (text) assert.ok(!whole.includes(text), `"${text}" is in the chain: ${whole}`)
      }
    },

    async assertNotAudited(answer: Answer): Promise<void> {
      assert.deepEqual(await rowsOf(database, answer), [], answer.text)
    },
  }
}

/** The project as stored in the audit log: the editable fields, without mail counters. */
export function keptOfProject(project: Static<typeof Project>): object {
  const { id, bounced, failed, complained, created_at, updated_at, plan, ...kept } = project
  // The difference between the score and the computed score. A new project's computed score is 100.
  return { ...kept, score_offset: project.reputation_score - 100 }
}

type DomainFields = Omit<Static<typeof Domain>, 'mta_provider' | 'status' | 'identity' | 'dns_records'> & {
  identity: { id: number; selector: string | null }
  dns_records: unknown
}

/** The domain as stored in the audit log: the editable fields, the status and the identity. */
export function keptOfDomain(domain: DomainFields): object {
  const { id, project_id, identity, dns_records, created_at, updated_at, ...rest } = domain
  const { verified_at, last_checked_at, last_check_error, ...kept } = rest
  return { ...kept, identity_id: identity.id, selector: identity.selector }
}

const nothing = {
  project_id: null,
  reason: null,
  before: null,
  after: null,
  related: null,
  limit_exception: null,
  bulk_id: null,
}
const nobody = { email: null, name: null, ip: null, user_agent: null }

interface Found {
  kept: object
  /** The whole row as text, including the chain columns. */
  whole: string
  actor: typeof nobody | null
  subject: typeof nobody | null
}

async function rowsOf(database: TestDatabase, { headers }: Answer): Promise<Found[]> {
  const requestId = headers.get('x-request-id') ?? assert.fail('the answer has no X-Request-Id')
  const person = (part: 'actor' | 'subject') => `
    (select json_build_object('email', email, 'name', name, 'ip', ip, 'user_agent', user_agent)
       from control.audit_people where audit_id = audit.id and part = '${part}') as ${part}`
  const rows = database.query<Found & { addresses: Record<string, string | null> }>(
    `select ${addressesBeside} as addresses, json_build_object('operation', operation, 'actor_kind', actor_kind,
              'actor_id', actor_id, 'project_id', project_id,
              'resource_type', resource_type, 'resource_id', resource_id, 'reason', reason, 'before', before,
              'after', after, 'related', related, 'limit_exception', limit_exception, 'bulk_id', bulk_id) as kept,
            audit::text as whole, ${person('actor')}, ${person('subject')}
       from control.audit where request_id = $1`,
    [requestId],
  )
  return (await rows).map(({ addresses, kept, ...row }) => ({
    ...row,
    kept: withAuditAddresses({ ...kept, addresses }),
  }))
}
