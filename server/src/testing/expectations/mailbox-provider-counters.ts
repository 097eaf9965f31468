import assert from 'node:assert/strict'
import type { TestDatabase } from '../harness/database.ts'

const kinds = ['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained']

/**
 * Compares the counters by mailbox provider with the stored events: every event is counted once, in the hour in which it was
 * recorded, for the operator of the domain. `providers` are the domains that the test uses; all others are `other`.
 */
export async function assertCountedByProvider(
  { query }: TestDatabase,
  providers: Record<string, string>,
): Promise<void> {
  const counted = (table: string, project: string) =>
    [...kinds, 'rejected']
      .map(
        (kind) =>
          `select ${project}, hour_at, mailbox_provider, '${kind}' as kind, ${kind} as count from mail.${table}`,
      )
      .join(' union all ')
  const differences = await query(
    `with event as (
       select events.project_id, date_trunc('hour', events.created_at, 'UTC') as hour_at,
              coalesce(provider.name, 'other') as mailbox_provider, split_part(type, '.', 2) as kind,
              type in ('message.bounced', 'message.failed')
                and not bool_or(type = 'message.sent') over (partition by message_id, recipient_no) as is_rejected
         from mail.events
         join mail.messages on messages.shard = events.shard and messages.id = message_id
         left join unnest($1::text[], $2::text[]) as provider (domain, name)
           on data ->> 'recipient' like '%@%' and lower(split_part(data ->> 'recipient', '@', -1)) = provider.domain
        where not is_test and type = any($3)
     ), expected as (
       select project_id, hour_at, mailbox_provider, kind, count(*) from event group by 1, 2, 3, 4
       union all
       select project_id, hour_at, mailbox_provider, 'rejected', count(*) from event where is_rejected group by 1, 2, 3
     ), wanted as (
       select * from expected
       union all
       select 0, hour_at, mailbox_provider, kind, sum(count) from expected group by 2, 3, 4
     ), found as (
       select * from (${counted('mailbox_provider_counters', 'project_id')}) as counters where count <> 0
       union all
       select * from (${counted('mailbox_provider_totals', '0')}) as totals where count <> 0
     )
     select project_id::int, hour_at, mailbox_provider, kind, wanted.count::int as events, found.count::int as counted
       from wanted full join found using (project_id, hour_at, mailbox_provider, kind)
      where wanted.count is distinct from found.count limit 10`,
    [Object.keys(providers), Object.values(providers), kinds.map((kind) => `message.${kind}`)],
  )
  assert.deepEqual(differences, [])
}
