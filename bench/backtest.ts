import { parseArgs } from 'node:util'
import type pg from 'pg'
import { circumstances, median, spread, table } from './figures.ts'
import { startPostern } from './postern.ts'

/**
 * `npm run bench:backtest`: the duration of a backtest of each shipped policy over 30 days, through the API. One in
 * `--every` five minutes of each project has counters.
 */
const { values: options } = parseArgs({
  options: {
    projects: { type: 'string', default: '1000' },
    every: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
  },
})
const [projects, every, rounds] = [options.projects, options.every, options.rounds].map(Number) as [
  number,
  number,
  number,
]
/** The range of the backtest, and the four weeks that `volume_spike` looks back. */
const days = 30 + 29

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const postern = await startPostern({})
try {
  const rows = await fill(postern.superuser)
  say(`${await circumstances(postern.superuser)}; ${projects} projects, ${rows} rows of counters.\n`)
  const { policies, token } = await listPolicies()
  const lines: string[][] = []
  for (const { id, name } of policies) {
    const seconds: number[] = []
    let fired = 0
    for (let round = 0; round < rounds; round++) {
      const startedAt = performance.now()
      const response = await fetch(`${postern.url}/v1/admin/policies/${id}/backtest?days=30`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const body = (await response.json()) as { firing_count: number; project_count: number }
      if (response.status !== 200 || body.project_count !== projects) throw new Error(JSON.stringify(body))
      seconds.push((performance.now() - startedAt) / 1000)
      fired = body.firing_count
    }
    lines.push([name, String(fired), spread(seconds, 2), median(seconds).toFixed(2)])
  }
  say(table(['policy', 'firings', 'seconds (spread)', 'median'], lines))
} finally {
  await postern.stop()
}

async function listPolicies() {
  const token = await postern.token()
  const response = await fetch(`${postern.url}/v1/admin/policies`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const { data } = (await response.json()) as { data: { id: number; name: string }[] }
  return { policies: data, token }
}

async function fill(client: pg.Client): Promise<number> {
  await client.query(
    `insert into control.plans (name, description, support_level, max_domains, max_users, max_mails_per_day,
                                max_mails_per_month, price, is_active)
     values ('Bench', '', 'email', 1, 1, 1, 1, 0, true)`,
  )
  await client.query(
    `insert into control.projects (name, user_id, plan_id)
     select 'Project ' || n, (select min(id) from control.users), (select max(id) from control.plans)
       from generate_series(1, $1::int) as n`,
    [projects],
  )
  for (let day = days; day >= 0; day--) {
    await client.query(`
      do $$
      declare day date := (now() at time zone 'UTC')::date - ${day};
      begin
        execute format('create table if not exists mail.%I partition of mail.sending_counters for values from (%L) to (%L)',
                       'sending_counters_' || to_char(day, 'YYYYMMDD'), day || ' 00:00+00', (day + 1) || ' 00:00+00');
      end $$`)
    await client.query(
      `insert into mail.sending_counters (project_id, bucket_at, sent, delivered, bounced, complained)
       select projects.id, bucket, sent, sent - sent / share, sent / share, (random() < 0.002)::int
         from control.projects as projects
         cross join generate_series(date_trunc('day', now(), 'UTC') - $1 * interval '1 day',
                                    date_trunc('day', now(), 'UTC') - ($1 - 1) * interval '1 day' - interval '5 minutes',
                                    interval '5 minutes') as bucket
         cross join lateral (select (random() * 40)::int + 1 as sent,
                                    case when projects.id % 50 = 0 then 4 else 60 end as share) as counts
        where random() < 1.0 / $2 and bucket < now()`,
      [day, every],
    )
  }
  await client.query('analyze mail.sending_counters')
  const { rows } = await client.query<{ count: string }>('select count(*) from mail.sending_counters')
  return Number(rows[0]?.count)
}
