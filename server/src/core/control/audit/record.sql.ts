import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'
import { genesis, type PersonContent, type RowContent } from './chain.ts'
import { instant } from './json-lines.sql.ts'

/** The head of a chain, locked until the transaction ends, and the id and time of the next row. */
export interface LockedHead {
  seq: number
  hash: string
  id: number
  at: string
  xid: string
}

/** Undefined if the chain has no head row yet. */
export async function lockHead(tx: Tx, chain: number): Promise<LockedHead | undefined> {
  const { rows } = await sql<LockedHead>`
    select seq, encode(hash, 'hex') as hash, nextval('control.audit_id_seq') as id,
           ${instant(sql`postern.now()`)} as at, pg_current_xact_id()::text as xid
      from control.audit_heads where chain = ${chain} for update`.execute(tx)
  return rows[0]
}

export async function insertHead(tx: Tx, chain: number): Promise<void> {
  await sql`insert into control.audit_heads (chain, seq, hash) values (${chain}, 0, decode(${genesis}, 'hex'))
    on conflict do nothing`.execute(tx)
}

const json = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))

/** Writes the row, its personal data and the new head in one statement. */
export async function appendRow(
  tx: Tx,
  row: RowContent & { prev_hash: string; hash: string },
  people: (PersonContent & { salt: string })[],
): Promise<void> {
  const each = <T>(value: (person: (typeof people)[number]) => T): T[] => people.map(value)
  await sql`
    with head as (
      update control.audit_heads set seq = ${row.seq}, hash = decode(${row.hash}, 'hex') where chain = ${row.chain}
    ), persons as (
      insert into control.audit_people (audit_id, part, project_id, salt, email, name, ip, user_agent)
      select ${row.id}::bigint, part, ${row.project_id}::bigint, decode(salt, 'hex'), email, name, ip, user_agent
        from unnest(${each(({ part }) => part)}::text[], ${each(({ salt }) => salt)}::text[],
                    ${each(({ email }) => email)}::text[], ${each(({ name }) => name)}::text[],
                    ${each(({ ip }) => ip)}::text[], ${each(({ user_agent }) => user_agent)}::text[])
          as person (part, salt, email, name, ip, user_agent)
    )
    insert into control.audit (chain, seq, id, at, actor_kind, actor_id, actor_digest, subject_digest, request_id,
      operation, project_id, resource_type, resource_id, reason, before, after, related, limit_exception, bulk_id, xid,
      prev_hash, hash)
    values (${row.chain}, ${row.seq}, ${row.id}, ${row.at}, ${row.actor_kind}, ${row.actor_id},
      decode(${row.actor_digest}, 'hex'), decode(${row.subject_digest}, 'hex'), ${row.request_id}, ${row.operation}, ${row.project_id},
      ${row.resource_type}, ${row.resource_id}, ${row.reason}, ${json(row.before)}, ${json(row.after)},
      ${json(row.related)}, ${json(row.limit_exception)}, ${row.bulk_id}, ${row.xid},
      decode(${row.prev_hash}, 'hex'), decode(${row.hash}, 'hex'))`.execute(tx)
}
