import { type RawBuilder, sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import { maySend } from '../../control/projects/may-send.ts'
import { allOf } from '../../shared/bounded-scan.ts'
import {
  idsIn,
  type MessageRange,
  ofMessages,
  ofRecipients,
  passing,
  type ScannedMessages,
  scanMessages,
} from './messages.sql.ts'
import type { RecipientStatus } from './wire.ts'

/** Identities of the sender's domain in one project. */
export interface SendingProject {
  project_id: number
  identity_ids: number[]
}

/** The identities of one name that are read. Each edit of a domain creates one. */
const maxIdentities = 1_000

/**
 * The projects that have or had a domain with this name. Several projects can claim a name; the one that verified it comes
 * first.
 */
export async function findSendingProjects(
  tx: ReadTx,
  domainName: string,
  atMost: number,
): Promise<SendingProject[]> {
  const { rows } = await sql<SendingProject>`
    select named.project_id, array_agg(named.id order by named.id) as identity_ids
      from (select id, project_id, domain_id from control.identities where name = ${domainName}
             order by id desc limit ${sql.lit(maxIdentities)}) as named
      left join lateral (
        select domains.verified_name = ${domainName} as is_verified from control.domains as domains
         where domains.id = named.domain_id limit 1) as domain on true
     group by named.project_id
     order by bool_or(coalesce(domain.is_verified, false)) desc, named.project_id
     limit ${sql.lit(atMost)}`.execute(tx)
  return rows
}

export interface SearchFilter {
  recipient?: string | undefined
  status?: RecipientStatus | undefined
  from?: Date | undefined
  to?: Date | undefined
  /** The full address, in lower case. */
  senderAddress?: string | undefined
  beforeId?: string | undefined
}

/** Messages to one address, from all projects or from these identities. */
export function searchByRecipient(
  tx: ReadTx,
  filter: SearchFilter & { recipient: string; identityIds?: readonly number[] | undefined },
  limit: number,
): Promise<ScannedMessages> {
  const range = ofRecipients(
    sql<boolean>`lower(named.address) = lower(${filter.recipient}) and ${idsIn(sql`named.message_id`, filter)}`,
  )
  const passes = [sending(range, filter), statusPasses(range, sql`named.project_id`, filter)]
  return scanMessages(tx, range, allOf(passes), { limit })
}

/** Messages of one project, sent with these identities. */
export function searchByProject(
  tx: ReadTx,
  { project_id, identity_ids: identityIds }: SendingProject,
  filter: SearchFilter,
  { limit, bound }: { limit: number; bound: number },
): Promise<ScannedMessages> {
  const range = ofMessages(sql<boolean>`messages.shard = postern.shard_of(${project_id})
    and messages.project_id = ${project_id} and ${idsIn(sql`messages.id`, filter)}`)
  const passes = [
    sending(range, { ...filter, identityIds }),
    statusPasses(range, sql`messages.project_id`, filter),
  ]
  return scanMessages(tx, range, allOf(passes), { limit, bound })
}

const sending = (
  range: MessageRange,
  { senderAddress, identityIds }: SearchFilter & { identityIds?: readonly number[] | undefined },
): RawBuilder<boolean> =>
  allOf([
    passing(range, { identityIds }),
    ...(senderAddress === undefined
      ? []
      : [
          sql<boolean>`coalesce((select lower(own.from_address) = ${senderAddress} from mail.messages as own
             where own.shard = ${range.shard} and own.id = ${range.id}), false)`,
        ]),
  ])

/** `held` is a queued recipient of a project that cannot send. */
const statusPasses = (
  range: MessageRange,
  projectId: RawBuilder<unknown>,
  { status }: SearchFilter,
): RawBuilder<boolean> =>
  status === 'held'
    ? allOf([
        passing(range, { status: 'queued' }),
        sql<boolean>`coalesce((select not ${maySend} from control.projects as projects
           where projects.id = ${projectId}), true)`,
      ])
    : passing(range, { status })

/** The projects among these that cannot send. */
export async function findBlocked(tx: ReadTx, projectIds: readonly number[]): Promise<number[]> {
  if (projectIds.length === 0) return []
  const { rows } = await sql<{ id: number }>`
    select wanted.id from unnest(${projectIds}::bigint[]) as wanted (id)
      left join control.projects as projects on projects.id = wanted.id
     where projects.id is null or not ${maySend}`.execute(tx)
  return rows.map(({ id }) => id)
}
