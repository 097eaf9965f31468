import type { Statements } from '../db/db.ts'
import { jobsSchema, type QueueName } from './queues.ts'

/** The queues in which a job is due. One index probe per queue. */
export async function findDueQueues(
  { executeSql }: Statements,
  queues: readonly QueueName[],
): Promise<QueueName[]> {
  const { rows } = await executeSql(
    `select queue.name from unnest($1::text[]) as queue (name)
      where exists (select from ${jobsSchema}.job as job
                     where job.name = queue.name and job.state < 'active' and job.start_after <= now())`,
    [queues],
  )
  return (rows as { name: QueueName }[]).map(({ name }) => name)
}
