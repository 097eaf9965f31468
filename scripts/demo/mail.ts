import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { abusive, makeMessages } from './messages.ts'
import { noise } from './noise.ts'

/**
 * Thirty days of counters, in the form in which the mail database stores them. The worker then relays them to the
 * control database, where scores and lifetime statistics are updated. Most senders are healthy, some have an outdated
 * list, and one has started sending to purchased addresses; an operator should find that sender.
 */
const days = 30
/** The index, among the demo projects, of a project with an outdated list. */
const neglected = 21

export async function makeMail(databaseUrl: string, projectIds: readonly number[]): Promise<void> {
  const database = new pg.Client({ connectionString: databaseUrl, options: '-c role=postern_mail' })
  await database.connect()
  try {
    await database.query('begin')
    // An interrupted run has inserted either everything or nothing.
    const { rows } = await database.query('select from mail.daily_counters limit 1')
    if (rows.length === 0) {
      await writeDays(database, projectIds)
      await makeMessages(database, projectIds)
    }
    await database.query('commit')
    await untilRelayed(database)
  } finally {
    await database.end()
  }
}

interface Day {
  project: number
  ago: number
  accepted: number
  sent: number
  delivered: number
  deferred: number
  bounced: number
  failed: number
  complained: number
  suppressed: number
}

async function writeDays(database: pg.Client, projectIds: readonly number[]): Promise<void> {
  const { rows } = await database.query<{ id: string; max_mails_per_month: string }>(
    `select projects.id, plans.max_mails_per_month from control.projects as projects
       join control.plans as plans on plans.id = coalesce(projects.admin_plan_id, projects.plan_id)
      where projects.id = any($1::bigint[])`,
    [projectIds],
  )
  const limits = new Map(rows.map((row) => [Number(row.id), Number(row.max_mails_per_month)]))
  const all = projectIds.flatMap((project, index) =>
    Array.from({ length: days }, (_, ago) => dayOf(project, index, ago, limits.get(project) ?? 0)),
  )
  await database.query(
    `with day as (
       select * from json_to_recordset($1) as day (project bigint, ago int, accepted bigint, sent bigint,
         delivered bigint, deferred bigint, bounced bigint, failed bigint, complained bigint, suppressed bigint)
     ), dated as (
       select *, (postern.now() at time zone 'UTC')::date - ago as day from day
     ), counted as (
       insert into mail.daily_counters
         (project_id, day, sent, delivered, deferred, bounced, failed, complained, suppressed)
       select project, day, sent, delivered, deferred, bounced, failed, complained, suppressed from dated
     ), by_day as (
       insert into mail.usage (project_id, period, starts_on, accepted)
       select project, 'day', day, accepted from dated
     ), by_month as (
       insert into mail.usage (project_id, period, starts_on, accepted)
       select project, 'month', date_trunc('month', day)::date, sum(accepted) from dated group by 1, 2, 3
     )
     insert into mail.outbox (project_id, topic, payload)
     select distinct project, 'project.stats_changed', '{}'::jsonb from dated`,
    [JSON.stringify(all)],
  )
}

interface Habit {
  accepted: number
  bounced: number
  complained: number
}

function dayOf(project: number, index: number, ago: number, mailsPerMonth: number): Day {
  const habit = index === abusive ? spree(ago) : ordinary(index, ago, mailsPerMonth)
  const accepted = Math.round(habit.accepted)
  const suppressed = Math.round(accepted * 0.004)
  const sent = accepted - suppressed
  const bounced = Math.round(sent * habit.bounced)
  const failed = Math.round(sent * 0.002)
  return {
    ...{ project, ago, accepted, suppressed, sent, bounced, failed },
    delivered: sent - bounced - failed,
    deferred: Math.round(sent * 0.03),
    complained: Math.round(sent * habit.complained),
  }
}

function ordinary(index: number, ago: number, mailsPerMonth: number): Habit {
  const at = noise(index * 31 + ago)
  const share = 0.1 + (index % 9) / 14
  const isOutdated = index % 9 === 8
  const usual = 0.006 + ((index * 7) % 10) * 0.0022
  return {
    // The current day is not complete.
    accepted: (mailsPerMonth / days) * share * (0.7 + at * 0.6) * (ago === 0 ? 0.4 : 1),
    bounced: (index === neglected ? 0.055 : isOutdated ? 0.036 : usual) * (0.8 + 0.4 * at),
    complained: isOutdated ? 0.0012 : 0.0002,
  }
}

/** A low-volume shop until five days ago. */
function spree(ago: number): Habit {
  const recentDays = [
    { accepted: 18_730, bounced: 0.059, complained: 0.0036 },
    { accepted: 33_940, bounced: 0.054, complained: 0.0031 },
    { accepted: 21_410, bounced: 0.046, complained: 0.0024 },
    { accepted: 11_820, bounced: 0.036, complained: 0.0016 },
    { accepted: 5_260, bounced: 0.026, complained: 0.0008 },
  ]
  return recentDays[ago] ?? { accepted: 2_100 + 600 * noise(ago), bounced: 0.008, complained: 0.0002 }
}

/** Waits for the relay, so that the console shows matching scores immediately. */
async function untilRelayed(database: pg.Client): Promise<void> {
  for (let tried = 0; tried < 300; tried++) {
    const { rows } = await database.query(
      `select from mail.outbox where topic = 'project.stats_changed' and created_at <= postern.now() limit 1`,
    )
    if (rows.length === 0) return
    await sleep(100)
  }
}
