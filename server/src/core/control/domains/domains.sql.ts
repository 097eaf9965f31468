import { type Selectable, type SqlBool, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { WantedRecord } from './records.ts'
import type { DnsRecordView, MtaProviderName } from './wire.ts'

type Columns = Selectable<Schema['control.domains']>

/** A domain with its live identity and its records. */
export interface DomainRow extends Columns {
  identity: {
    id: number
    provider: MtaProviderName
    state: string
    selector: string | null
    registered_at: string | null
  }
  dns_records: DnsRecordView[]
}

const domains = (tx: ReadTx) =>
  tx
    .selectFrom('control.domains as domains')
    .innerJoin('control.identities as identities', (join) =>
      join
        .onRef('identities.project_id', '=', 'domains.project_id')
        .onRef('identities.domain_id', '=', 'domains.id')
        .on('identities.retiring_at', 'is', null),
    )
    .selectAll('domains')
    .select([
      sql<DomainRow['identity']>`json_build_object(
        'id', identities.id, 'provider', identities.provider, 'state', identities.state,
        'selector', (
          select keys.selector from control.dkim_keys as keys
          where keys.project_id = identities.project_id and keys.identity_id = identities.id
            and keys.state in ('active', 'pending')
          order by keys.state limit 1),
        'registered_at', identities.registered_at)`.as('identity'),
      sql<DnsRecordView[]>`(
        select json_agg(json_build_object('purpose', records.purpose, 'type', records.type,
                                          'name', records.name, 'value', records.value, 'status', records.status)
                        order by records.id)
        from control.dns_records as records
        where records.project_id = domains.project_id and records.domain_id = domains.id)`.as('dns_records'),
    ])

export const find = (tx: ReadTx, projectId: number, id: number): Promise<DomainRow | undefined> =>
  domains(tx).where('domains.project_id', '=', projectId).where('domains.id', '=', id).executeTakeFirst()

/** Locks only this row. The caller holds the project's lock and reads the related rows afterwards. */
export async function lock(tx: Tx, projectId: number, id: number): Promise<DomainRow | undefined> {
  await tx
    .selectFrom('control.domains')
    .select('id')
    .where('project_id', '=', projectId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  return find(tx, projectId, id)
}

export const list = (
  tx: ReadTx,
  projectId: number,
  { limit, beforeId }: { limit: number; beforeId: number },
  only: number | null = null,
): Promise<DomainRow[]> =>
  domains(tx)
    .where('domains.project_id', '=', projectId)
    .where('domains.id', '<', beforeId)
    .$if(only !== null, (all) => all.where('domains.id', '=', only))
    .orderBy('domains.id', 'desc')
    .limit(limit)
    .execute()

export async function count(tx: ReadTx, projectId: number): Promise<number> {
  const { domains } = await tx
    .selectFrom('control.domains')
    .select((eb) => eb.fn.countAll<number>().as('domains'))
    .where('project_id', '=', projectId)
    .executeTakeFirstOrThrow()
  return domains
}

interface Claim {
  name: string
  mta_provider: MtaProviderName
  ownership_token: string
}

/** Undefined if the project already has a domain with this name. */
export async function insert(tx: Tx, projectId: number, claim: Claim): Promise<number | undefined> {
  const row = await tx
    .insertInto('control.domains')
    .values({ project_id: projectId, ...claim })
    .onConflict((conflict) => conflict.columns(['project_id', 'name']).doNothing())
    .returning('id')
    .executeTakeFirst()
  return row?.id
}

export async function hasName(
  tx: ReadTx,
  projectId: number,
  name: string,
  exceptId: number,
): Promise<boolean> {
  const row = await tx
    .selectFrom('control.domains')
    .select('id')
    .where('project_id', '=', projectId)
    .where('name', '=', name)
    .where('id', '<>', exceptId)
    .executeTakeFirst()
  return row !== undefined
}

/** Resets the verification first, because a name can be verified in only one project. */
export async function reclaim(tx: Tx, { project_id, id }: DomainRow, claim: Claim): Promise<void> {
  await sql`select control.reset_verification(${project_id}, ${id})`.execute(tx)
  await tx
    .updateTable('control.domains')
    .set((eb) => ({ ...claim, version: eb('version', '+', 1), updated_at: sql<Date>`postern.now()` }))
    .where('project_id', '=', project_id)
    .where('id', '=', id)
    .execute()
}

export async function touch(tx: Tx, { project_id, id }: DomainRow): Promise<void> {
  await tx
    .updateTable('control.domains')
    .set((eb) => ({ version: eb('version', '+', 1), updated_at: sql<Date>`postern.now()` }))
    .where('project_id', '=', project_id)
    .where('id', '=', id)
    .execute()
}

/** Returns how many times the domain's key was rotated today (UTC). */
export async function countRotation(tx: Tx, { project_id, id }: DomainRow): Promise<number> {
  const { rows } = await sql<{ dkim_rotations: number }>`
    update control.domains
       set dkim_rotations = case when dkim_rotated_on = (postern.now() at time zone 'UTC')::date
                                 then dkim_rotations + 1 else 1 end,
           dkim_rotated_on = (postern.now() at time zone 'UTC')::date
     where project_id = ${project_id} and id = ${id}
    returning dkim_rotations`.execute(tx)
  return rows[0]?.dkim_rotations ?? 0
}

/** Does not change the configuration: the version and `updated_at` stay the same. */
export async function checkNow(
  tx: Tx,
  { project_id, id }: Pick<DomainRow, 'project_id' | 'id'>,
): Promise<void> {
  await tx
    .updateTable('control.domains')
    .set({ next_check_at: sql<Date>`postern.now()` })
    .where('project_id', '=', project_id)
    .where('id', '=', id)
    .execute()
}

export async function remove(tx: Tx, { project_id, id }: DomainRow): Promise<void> {
  await tx.deleteFrom('control.domains').where('project_id', '=', project_id).where('id', '=', id).execute()
}

export async function insertRecords(
  tx: Tx,
  projectId: number,
  domainId: number,
  records: readonly WantedRecord[],
): Promise<void> {
  if (records.length === 0) return
  await tx
    .insertInto('control.dns_records')
    .values(records.map((record) => ({ project_id: projectId, domain_id: domainId, ...record })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function deleteRecords(
  tx: Tx,
  projectId: number,
  domainId: number,
  recordName?: string,
): Promise<void> {
  const all = tx
    .deleteFrom('control.dns_records')
    .where('project_id', '=', projectId)
    .where('domain_id', '=', domainId)
  await (recordName === undefined ? all : all.where('name', '=', recordName)).execute()
}

/** Replaces the provider's DKIM records with the current ones. */
export async function replaceAliases(
  tx: Tx,
  projectId: number,
  domainId: number,
  aliases: readonly WantedRecord[],
): Promise<void> {
  await tx
    .deleteFrom('control.dns_records')
    .where('project_id', '=', projectId)
    .where('domain_id', '=', domainId)
    .where('purpose', '=', 'dkim')
    .where('type', '=', 'CNAME')
    .where(sql<SqlBool>`name <> all (${aliases.map(({ name }) => name)})`)
    .execute()
  await insertRecords(tx, projectId, domainId, aliases)
}

/** Only for administrators: a customer must not learn which other project uses the name. */
export async function verifiedHolder(
  tx: ReadTx,
  name: string,
  exceptProjectId: number,
): Promise<{ id: number; project_id: number } | undefined> {
  return tx
    .selectFrom('control.domains')
    .select(['id', 'project_id'])
    .where('name', '=', name)
    .where('status', '=', 'verified')
    .where('project_id', '<>', exceptProjectId)
    .executeTakeFirst()
}

export async function users(
  tx: ReadTx,
  { project_id, id }: DomainRow,
  limit: number,
): Promise<{ routes: number[]; keys: number[] }> {
  const ids = async (table: 'control.routes' | 'control.api_keys') =>
    (
      await tx
        .selectFrom(table)
        .select('id')
        .where('project_id', '=', project_id)
        .where('domain_id', '=', id)
        .orderBy('id')
        .limit(limit)
        .execute()
    ).map((row) => row.id)
  return { routes: await ids('control.routes'), keys: await ids('control.api_keys') }
}

/** One id, or none if the domain does not exist. */
export async function liveIdentities(tx: ReadTx, projectId: number, domainId: number): Promise<number[]> {
  const rows = await tx
    .selectFrom('control.identities')
    .select('id')
    .where('project_id', '=', projectId)
    .where('domain_id', '=', domainId)
    .where('retiring_at', 'is', null)
    .execute()
  return rows.map(({ id }) => id)
}

/** Runs in the mail database. Counts at most `limit` rows. */
export async function countQueued(
  tx: ReadTx,
  projectId: number,
  identityIds: readonly number[],
  limit: number,
): Promise<number> {
  if (identityIds.length === 0) return 0
  const some = tx
    .selectFrom('mail.dispatch')
    .select(sql<SqlBool>`true`.as('waits'))
    .where('shard', '=', sql<number>`postern.shard_of(${projectId})`)
    .where('project_id', '=', projectId)
    .where('identity_id', 'in', [...identityIds])
    .limit(limit)
  const { queued } = await tx
    .selectFrom(some.as('some'))
    .select((eb) => eb.fn.countAll<number>().as('queued'))
    .executeTakeFirstOrThrow()
  return queued
}
