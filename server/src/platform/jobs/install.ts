import type pg from 'pg'
import { PgBoss } from 'pg-boss'
import { roleName } from '../db/roles.ts'
import { jobsSchema, queues } from './queues.ts'

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
  for (const { table_name: table } of rows) {
    await client.query(`grant insert, select (id) on ${jobsSchema}.${table} to ${customer}`)
  }
}
