import type pg from 'pg'
import { PgBoss } from 'pg-boss'
import { roleName } from '../db/roles.ts'
import { customerQueues, jobsSchema, queues } from './queues.ts'

/**
 * Creates or upgrades the pg-boss schema as the owner, then the queues and their privileges. Idempotent.
 */
export async function installJobs(client: pg.Client): Promise<void> {
  const boss = new PgBoss({
    db: { executeSql: (text, values) => client.query(text, values) },
    schema: jobsSchema,
    supervise: false,
    schedule: false,
  })
  // Without a listener, an error event would terminate the process. Failed calls still throw.
  boss.on('error', () => {})
  await boss.start()
  try {
    for (const [name, options] of Object.entries(queues)) {
      await boss.createQueue(name, options)
      const current = { ...(await boss.getQueue(name)) } as Record<string, unknown>
      const isStale = Object.entries(options).some(([option, value]) => current[option] !== value)
      if (isStale) await boss.updateQueue(name, options)
    }
  } finally {
    await boss.stop({ graceful: false })
  }
  const [admin, customer] = [roleName('admin'), roleName('customer')]
  await client.query(`grant usage on schema ${jobsSchema} to ${admin}, ${customer}`)
  await client.query(`grant select, insert, update, delete on all tables in schema ${jobsSchema} to ${admin}`)
  // Customers can send jobs but not read them.
  await client.query(`grant select on ${jobsSchema}.queue to ${customer}`)
  const { rows } = await client.query<{ table_name: string }>(
    `select distinct table_name from ${jobsSchema}.queue`,
  )
  await client.query(maySend)
  for (const { table_name: table } of rows) {
    await client.query(`grant insert, select (id) on ${jobsSchema}.${table} to ${customer}`)
    await protectJobs(client, table)
  }
}

/** Which jobs a customer's transaction can send. Replaced by each migration, so the policies never change. */
const maySend = `
  create or replace function ${jobsSchema}.customer_may_send(name text, data jsonb) returns boolean
  language sql stable
  return name in (${customerQueues.map((name) => `'${name}'`).join(', ')})
     and coalesce(data ->> 'project_id' = postern.current_project()::text, not data ? 'project_id', false)`

/** Enables row-level security on a jobs table. It does not apply to the owner, which upgrades pg-boss. */
async function protectJobs(client: pg.Client, name: string): Promise<void> {
  const table = `${jobsSchema}.${name}`
  const { rowCount } = await client.query(
    `select from pg_policy where polrelid = $1::regclass and polname = 'customer_insert'`,
    [table],
  )
  if (rowCount) return
  const [admin, customer] = [roleName('admin'), roleName('customer')]
  await client.query(`
    alter table ${table} enable row level security;
    create policy admin on ${table} to ${admin} using (true);
    create policy customer_insert on ${table} for insert to ${customer}
      with check (${jobsSchema}.customer_may_send(name, data));
    create policy customer_select on ${table} for select to ${customer} using (true)`)
}
