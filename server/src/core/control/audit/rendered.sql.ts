import { type RawBuilder, sql } from 'kysely'

/**
 * Rows as JSON text made by the database itself: on the way through JavaScript's types a timestamp would lose
 * its microseconds, a number its digits, and the null of SQL would become that of JSON.
 */

/** In UTC whatever the session's settings, with what microseconds there are, and telling BC from AD. */
export const instant = (at: RawBuilder<unknown>): RawBuilder<string> =>
  sql<string>`(to_json(${at} at time zone 'UTC') #>> '{}') || 'Z'`

/** JSON's null, which Postern never writes, as a text, which it never writes either: verification refuses it. */
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
  'actor_id', a.actor_id, 'actor_digest', encode(a.actor_digest, 'hex'),
  'subject_digest', encode(a.subject_digest, 'hex'), 'request_id', a.request_id, 'operation', a.operation,
  'project_id', a.project_id, 'resource_type', a.resource_type, 'resource_id', a.resource_id,
  'reason', a.reason, 'before', ${json('a.before')}, 'after', ${json('a.after')},
  'related', ${json('a.related')}, 'limit_exception', ${json('a.limit_exception')}, 'xid', a.xid::text,
  'prev_hash', encode(a.prev_hash, 'hex'), 'hash', encode(a.hash, 'hex')`

/** Of `control.audit a`. */
export const auditLine = sql<string>`json_build_object(${columns},
  'people', coalesce(${people}, '[]'))::text`

/** The same without the people beside the row. */
export const bareAuditLine = sql<string>`json_build_object(${columns})::text`

/** Of `control.audit_people p`, where no row of the audit belongs to it. */
export const personLine = sql<string>`json_build_object(
  'type', 'person', 'audit_id', p.audit_id, 'part', p.part, 'project_id', p.project_id,
  'salt', encode(p.salt, 'hex'), 'email', p.email, 'name', p.name, 'ip', p.ip, 'user_agent', p.user_agent)::text`

/** Of `control.audit_checkpoints c`. */
export const checkpointLine = sql<string>`json_build_object(
  'type', 'checkpoint', 'id', c.id, 'at', ${instant(sql`c.at`)}, 'heads', ${json('c.heads')},
  'key_id', c.key_id, 'prev_hash', encode(c.prev_hash, 'hex'), 'hash', encode(c.hash, 'hex'),
  'signature', encode(c.signature, 'hex'))::text`
