import assert from 'node:assert/strict'
import type { TestDatabase } from '../harness/database.ts'

const kinds = ['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained', 'suppressed']

/**
 * Compares the five-minute counters with the stored events: every event is counted once, in the five minutes in which it
 * was recorded, in the right column. `isExcluded` is an SQL condition on `events`.
 */
export async function assertCounted({ query }: TestDatabase, isExcluded = 'false'): Promise<void> {
  const counted = kinds.flatMap((kind) => [
    `select project_id, bucket_at, '${kind}' as kind, false as is_excluded, ${kind} as count from mail.sending_counters`,
    `select project_id, bucket_at, '${kind}', true, excluded_${kind} from mail.sending_counters`,
  ])
  const differences = await query(
    `with expected as (
       select project_id, date_bin('5 minutes', created_at, 'epoch') as bucket_at, split_part(type, '.', 2) as kind,
              coalesce(${isExcluded}, false) as is_excluded, count(*)::int as count
         from mail.events
        where type = any($1) group by 1, 2, 3, 4
     ), found as (select * from (${counted.join(' union all ')}) as counters where count <> 0)
     select project_id::int, bucket_at, kind, is_excluded, expected.count as events, found.count as counted
       from expected full join found using (project_id, bucket_at, kind, is_excluded)
      where expected.count is distinct from found.count limit 10`,
    [kinds.map((kind) => `message.${kind}`)],
  )
  assert.deepEqual(differences, [])
}
