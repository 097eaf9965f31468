/**
 * Rows as JSON text, built by the database. JavaScript types would lose the microseconds of timestamps and the digits of large
 * numbers, and would turn SQL null into JSON null.
 */
import { type RawBuilder, sql } from 'kysely'

/** In UTC, independent of session settings, with microseconds and era. */
export const instant = (at: RawBuilder<unknown>): RawBuilder<string> =>
  sql<string>`(to_json(${at} at time zone 'UTC') #>> '{}') || 'Z'`

/** Turns JSON null into a string. Postern never writes either of them here, and verification rejects the string. */
const json = (column: string): RawBuilder<unknown> => {
  const value = sql.ref(column)
  return sql`case jsonb_typeof(${value}) when 'null' then to_jsonb('null'::text) else ${value} end`
}

const people = sql`(
  select json_agg(json_build_object('part', p.part, 'project_id', p.project_id, 'salt', encode(p.salt, 'hex'),
                                    'email', p.email, 'name', p.name, 'ip', p.ip, 'user_agent', p.user_agent)
                  order by p.part)
    from control.audit_people p where p.audit_id = a.id)`

const columns = sql`
  'type', 'audit', 'chain', a.chain, 'seq', a.seq, 'id', a.id, 'at', ${instant(sql`a.at`)},
  'actor_kind', a.actor_kind, 'actor_id', a.actor_id, 'actor_digest', encode(a.actor_digest, 'hex'),
  'subject_digest', encode(a.subject_digest, 'hex'), 'request_id', a.request_id, 'operation', a.operation,
  'project_id', a.project_id, 'resource_type', a.resource_type, 'resource_id', a.resource_id,
  'reason', a.reason, 'before', ${json('a.before')}, 'after', ${json('a.after')},
  'related', ${json('a.related')}, 'limit_exception', ${json('a.limit_exception')}, 'bulk_id', a.bulk_id,
  'xid', a.xid::text, 'prev_hash', encode(a.prev_hash, 'hex'), 'hash', encode(a.hash, 'hex')`

/** A row of `control.audit a`. */
export const auditLine = sql<string>`json_build_object(${columns},
  'people', coalesce(${people}, '[]'))::text`

/** The row without personal data. */
export const bareAuditLine = sql<string>`json_build_object(${columns})::text`

/** A row of `control.audit_people p` without an audit row. */
export const personLine = sql<string>`json_build_object(
  'type', 'person', 'audit_id', p.audit_id, 'part', p.part, 'project_id', p.project_id,
  'salt', encode(p.salt, 'hex'), 'email', p.email, 'name', p.name, 'ip', p.ip, 'user_agent', p.user_agent)::text`

/** A row of `control.audit_checkpoints c`. */
export const checkpointLine = sql<string>`json_build_object(
  'type', 'checkpoint', 'id', c.id, 'at', ${instant(sql`c.at`)}, 'heads', ${json('c.heads')},
  'key_id', c.key_id, 'prev_hash', encode(c.prev_hash, 'hex'), 'hash', encode(c.hash, 'hex'),
  'signature', encode(c.signature, 'hex'))::text`
