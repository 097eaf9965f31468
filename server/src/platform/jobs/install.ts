import type pg from 'pg'
import { PgBoss } from 'pg-boss'
import { roleName } from '../db/roles.ts'
import { customerQueues, jobsSchema, queues } from './queues.ts'

/**
 * pg-boss's own tables, made and brought up to date by itself, as the owner; then our queues and who may use them.
 * Changes nothing when there is nothing to change.
 */
export async function installJobs(client: pg.Client): Promise<void> {
  const boss = new PgBoss({
    db: { executeSql: (text, values) => client.query(text, values) },
    schema: jobsSchema,
    supervise: false,
    schedule: false,
  })
  // One that nobody hears would end the process; what fails below is thrown.
  boss.on('error', () => {})
  await boss.start()
  try {
    for (const [name, options] of Object.entries(queues)) {
      await boss.createQueue(name, options)
      const present = { ...(await boss.getQueue(name)) } as Record<string, unknown>
      const isStale = Object.entries(options).some(([option, value]) => present[option] !== value)
      if (isStale) await boss.updateQueue(name, options)
    }
  } finally {
    await boss.stop({ graceful: false })
  }
  const [admin, customer] = [roleName('admin'), roleName('customer')]
  await client.query(`grant usage on schema ${jobsSchema} to ${admin}, ${customer}`)
  await client.query(`grant select, insert, update, delete on all tables in schema ${jobsSchema} to ${admin}`)
  // Customers ask for work, and see none of anybody's.
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

/** What a customer's transaction may ask for. Replaced at each installation, so that the policies can stay as they are. */
const maySend = `
  create or replace function ${jobsSchema}.customer_may_send(name text, data jsonb) returns boolean
  language sql stable
  return name in (${customerQueues.map((name) => `'${name}'`).join(', ')})
     and coalesce(data ->> 'project_id' = postern.current_project()::text, not data ? 'project_id', false)`

/** Row-level security of a table of jobs. The owner, as whom pg-boss is brought up to date, is above it. */
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
