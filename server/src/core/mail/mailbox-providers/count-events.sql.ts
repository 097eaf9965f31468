import { sql } from 'kysely'
import type { OneStatement, ReadTx } from '../../../platform/db/db.ts'
import { mailboxProviderOf } from './mailbox-provider.ts'

/** As in mail.sending_counters: `rejected` is a part of `bounced` and `failed`. */
export const providerKinds = [
  'sent',
  'delivered',
  'deferred',
  'bounced',
  'failed',
  'complained',
  'rejected',
] as const
export type ProviderKind = (typeof providerKinds)[number]

const eventTypes = providerKinds.filter((kind) => kind !== 'rejected').map((kind) => `message.${kind}`)

/** mail.mailbox_provider_progress. */
export interface Progress {
  version: number
  /** Events between `counted_until` and `counting_until` can be counted. */
  is_counting: boolean
  counted_until: Date
  counting_until: Date
  after_shard: number
  after_id: string
}

const progressColumns = sql`
  version, counted_until < counting_until as is_counting, counted_until, counting_until, after_shard, after_id`

export async function readProgress(tx: ReadTx): Promise<Progress> {
  const { rows } = await sql<Progress>`
    select ${progressColumns} from mail.mailbox_provider_progress`.execute(tx)
  if (!rows[0]) throw new Error('mail.mailbox_provider_progress has no row')
  return rows[0]
}

export interface Closing {
  version: number
  closing_at: Date | null
  closing_transactions: string[]
  /** The next `closing_at`. */
  next_at: Date
  /** The transactions that are running now and may write events. */
  running: string[]
}

/**
 * Every transaction holds a lock on its virtual id from its start to its end, also before it writes. All roles can read the
 * locks. The start of a transaction precedes that lock by a moment, hence `settlingMs`. Sessions whose login cannot write
 * events, such as autovacuum, are ignored. A session that is missing in pg_stat_activity has just begun.
 */
export async function readClosing(tx: ReadTx, settlingMs: number): Promise<Closing> {
  const { rows } = await sql<Closing>`
    select version, closing_at, closing_transactions,
           date_trunc('milliseconds', postern.now() - ${settlingMs} * interval '1 millisecond') as next_at,
           array(select lock.pid || ' ' || lock.virtualtransaction
                   from pg_locks as lock
                   left join pg_stat_activity as session on session.pid = lock.pid
                  where lock.locktype = 'virtualxid' and lock.granted and lock.mode = 'ExclusiveLock'
                    and lock.pid <> pg_backend_pid()
                    and (session.pid is null
                         or session.datname = current_database()
                            and pg_has_role(session.usesysid, 'postern_mail', 'member'))) as running
      from mail.mailbox_provider_progress`.execute(tx)
  if (!rows[0]) throw new Error('mail.mailbox_provider_progress has no row')
  return rows[0]
}

/**
 * Sets the time up to which events will be counted next, and if `isClosed`, starts to count up to the previous one. Also
 * deletes old totals. Returns undefined if another worker was faster.
 */
export async function moveClosing(
  tx: OneStatement,
  { version, next_at, running }: Closing,
  isClosed: boolean,
): Promise<Progress | undefined> {
  const { rows } = await sql<Progress>`
    with old as (
      delete from mail.mailbox_provider_totals where hour_at < postern.now() - interval '90 days'
    )
    update mail.mailbox_provider_progress
       set version = version + 1,
           counting_until = case when ${isClosed} then greatest(closing_at, counting_until) else counting_until end,
           after_shard = 0, after_id = '00000000-0000-0000-0000-000000000000',
           closing_at = ${next_at}, closing_transactions = ${running}
     where version = ${version}::bigint
    returning ${progressColumns}`.execute(tx)
  return rows[0]
}

interface DomainCounts extends Record<ProviderKind, number> {
  project_id: number
  hour_at: string
  /** Of the recipient's address, in lower case. */
  domain: string
}

export interface Scanned {
  events: number
  last: { shard: number; id: string } | null
  counts: DomainCounts[]
}

const countOf = (kind: ProviderKind): string =>
  kind === 'rejected'
    ? 'count(*) filter (where is_rejected)'
    : `count(*) filter (where type = 'message.${kind}')`
const counts = sql.raw(providerKinds.map((kind) => `${countOf(kind)} as ${kind}`).join(', '))

/**
 * The next `limit` events in the order of (shard, id), counted by project, hour and domain of the recipient. Events of other
 * types are read as well, so the number of rows is bounded. Mail of test keys is not counted, as in the other counters.
 *
 * The shards are read one after the other: the function on the outer side of a lateral join is read in its order, and only as
 * far as the limit requires.
 */
export async function scanEvents(tx: ReadTx, progress: Progress, limit: number): Promise<Scanned> {
  const { counted_until, counting_until, after_shard, after_id } = progress
  // A bitmap scan would read all events of a shard in each step.
  await sql`set local enable_bitmapscan = off`.execute(tx)
  const { rows } = await sql<Scanned>`
    with scanned as materialized (
      select event.*
        from generate_series(${after_shard}::int, 1023) as shard_no
       cross join lateral (
         select shard, id, project_id, type, message_id, recipient_no, data ->> 'recipient' as recipient, created_at
           from mail.events
          where shard = shard_no::smallint
            and id >= postern.uuid7_floor(${counted_until}::timestamptz)
            and id < postern.uuid7_floor(${counting_until}::timestamptz)
            and id > case when shard_no = ${after_shard}::int then ${after_id}::uuid
                          else '00000000-0000-0000-0000-000000000000' end
          order by id limit ${limit}::int) as event
       limit ${limit}::int
    ), relevant as (
      select event.project_id, event.type, date_trunc('hour', event.created_at, 'UTC') as hour_at,
             coalesce(lower(substring(event.recipient from '[^@]*$')), '') as domain,
             -- The MTA never accepted the message. An event is not earlier than its message: this excludes partitions. With
             -- both ends of a range, PostgreSQL would use the wrong index while a partition has no statistics.
             event.type in ('message.bounced', 'message.failed') and not exists (
               select from mail.events as sent
                where sent.shard = event.shard and sent.message_id = event.message_id
                  and sent.recipient_no = event.recipient_no and sent.type = 'message.sent'
                  and sent.id >= (left(event.message_id::text, 13) || '-0000-0000-000000000000')::uuid) as is_rejected
        from scanned as event
       where event.type = any(${eventTypes})
         and not exists (
           select from mail.messages as message
            where message.shard = event.shard and message.id = event.message_id and message.is_test)
    )
    select (select count(*)::int from scanned) as events,
           (select to_json(last) from (select shard, id from scanned order by shard desc, id desc limit 1) as last) as last,
           (select coalesce(json_agg(counted), '[]')
              from (select project_id, hour_at, domain, ${counts} from relevant
                     group by project_id, hour_at, domain) as counted) as counts`.execute(tx)
  if (!rows[0]) throw new Error('the select returned no row')
  return rows[0]
}

const columns = sql.raw(providerKinds.join(', '))
const sums = sql.raw(providerKinds.map((kind) => `sum(${kind}) as ${kind}`).join(', '))
const added = (table: string) =>
  sql.raw(providerKinds.map((kind) => `${kind} = ${table}.${kind} + excluded.${kind}`).join(', '))

/**
 * Adds the counts and moves the progress past them in one statement. Returns undefined, and adds nothing, if another worker
 * was faster. Counters older than their retention have no partition.
 */
export async function addCounts(
  tx: OneStatement,
  { version }: Progress,
  { last, counts }: Scanned,
  isLast: boolean,
): Promise<Progress | undefined> {
  const each = <T>(value: (count: DomainCounts) => T): T[] => counts.map(value)
  const ofKinds = sql.join(providerKinds.map((kind) => sql`${each((count) => count[kind])}::integer[]`))
  const { rows } = await sql<Progress>`
    with moved as (
      update mail.mailbox_provider_progress
         set version = version + 1,
             counted_until = case when ${isLast} then counting_until else counted_until end,
             after_shard = ${last?.shard ?? 0}::smallint,
             after_id = ${last?.id ?? '00000000-0000-0000-0000-000000000000'}::uuid
       where version = ${version}::bigint
      returning ${progressColumns}
    ), counted as materialized (
      select project_id, hour_at, mailbox_provider, ${sums}
        from unnest(${each(({ project_id }) => project_id)}::bigint[],
                    ${each(({ hour_at }) => hour_at)}::timestamptz[],
                    ${each(({ domain }) => mailboxProviderOf(domain))}::text[],
                    ${ofKinds}) as counted (project_id, hour_at, mailbox_provider, ${columns})
       where hour_at >= date_trunc('day', postern.now(), 'UTC') - interval '89 days' and exists (select from moved)
       group by project_id, hour_at, mailbox_provider
    ), counter as (
      insert into mail.mailbox_provider_counters as counter (project_id, hour_at, mailbox_provider, ${columns})
      select project_id, hour_at, mailbox_provider, ${columns} from counted
      on conflict (shard, project_id, hour_at, mailbox_provider) do update set ${added('counter')}
    ), total as (
      insert into mail.mailbox_provider_totals as total (hour_at, mailbox_provider, ${columns})
      select hour_at, mailbox_provider, ${sums} from counted group by hour_at, mailbox_provider
      on conflict (hour_at, mailbox_provider) do update set ${added('total')}
    )
    select * from moved`.execute(tx)
  return rows[0]
}
