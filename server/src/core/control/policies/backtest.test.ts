import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PosternError } from '../../../platform/errors.ts'
import { insertProjects } from '../../../testing/fixtures/project-rows.ts'
import { databaseNow, openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { recordStatements } from '../../../testing/harness/statements.ts'
import { type BacktestDeps, backtestPolicy } from './backtest.ts'
import type { PolicyConfig } from './wire.ts'

const database = await testDatabase()
const opened = openDatabase(database)
/** One connection, which reports its statistics when asked. */
const mail = openDatabase(database, { poolSize: 1 }).as('mail')
const deps: BacktestDeps = { db: opened.as('admin'), mailDbFor: () => mail }
/** The start of the current five minutes. */
const now = new Date(Math.floor((await databaseNow(database)).getTime() / 300_000) * 300_000)

const policy = (changes: Partial<PolicyConfig> = {}): PolicyConfig => ({
  ...{
    name: 'Bounces',
    mode: 'off',
    signal: 'bounce_rate',
    window_minutes: 60,
    threshold: 10,
    minimum_volume: 100,
  },
  applies_to: { plan_ids: null, younger_than_days: null, except_project_ids: [] },
  intervention: { kind: 'lock', pace_per_hour: null, duration_minutes: 120, public_note: null },
  ...{ cooldown_minutes: 24 * 60, ...changes },
})

/** Counters so many minutes before now. */
async function addCounters(
  projectId: number,
  minutesAgo: number,
  counts: Record<string, number>,
): Promise<void> {
  await database.query(
    `insert into mail.sending_counters (project_id, bucket_at, ${Object.keys(counts).join(', ')})
     values ($1, date_bin('5 minutes', $2::timestamptz - $3 * interval '1 minute', 'epoch'), ${Object.values(counts).join(', ')})`,
    [projectId, now, minutesAgo],
  )
}

/** Partitions for the past, which a new installation does not have. */
async function addPartitions(days: number): Promise<void> {
  for (let ago = 2; ago <= days; ago++) {
    const day = new Date(now.getTime() - ago * 86_400_000).toISOString().slice(0, 10)
    const next = new Date(now.getTime() - (ago - 1) * 86_400_000).toISOString().slice(0, 10)
    await database.query(
      `create table if not exists mail.sending_counters_${day.replaceAll('-', '')}
         partition of mail.sending_counters for values from ('${day} 00:00+00') to ('${next} 00:00+00')`,
    )
  }
}

const lockByHand = (projectId: number, minutesAgo: number, endedMinutesAgo: number | null) =>
  database.query(
    `insert into control.interventions (project_id, kind, source, reason, created_at, ended_at, ended_by)
     values ($1, 'lock', 'administrator', 'By hand', $2::timestamptz - $3 * interval '1 minute',
             $2::timestamptz - $4 * interval '1 minute', case when $4::int is null then null else 'administrator' end)`,
    [projectId, now, minutesAgo, endedMinutesAgo],
  )

await addPartitions(60)

describe('a backtest', () => {
  test('says which projects a policy would have fired for, when, and what it would have stopped', async () => {
    const [bad = 0, good = 0] = await insertProjects(database, 2)
    await addCounters(bad, 600, { sent: 200, delivered: 150, bounced: 50 })
    await addCounters(bad, 570, { sent: 70 })
    await addCounters(bad, 400, { sent: 1000, delivered: 1000 })
    await addCounters(good, 600, { sent: 1000, bounced: 5 })
    await lockByHand(bad, 540, null)
    const result = await backtestPolicy(deps, policy(), 1)
    assert.deepEqual(
      result.firings.map(({ project_id, value, counted, baseline, recipients_stopped }) => [
        ...[project_id, value, counted, baseline, recipients_stopped],
      ]),
      [[bad, 25, 50, 200, 70]],
    )
    assert.deepEqual([result.firing_count, result.fired_project_count, result.also_locked_count], [1, 1, 1])
    assert.ok(result.firings[0]?.locked_by_administrator_at)
    assert.deepEqual(
      result.administrator_interventions.map(({ project_id, kind }) => [project_id, kind]),
      [[bad, 'lock']],
    )
  })

  test('does not count across the end of an intervention, nor fire while a stricter one is in force', async () => {
    const [project = 0] = await insertProjects(database, 1)
    await addCounters(project, 300, { sent: 90, bounced: 30 })
    await lockByHand(project, 294, 280)
    await addCounters(project, 275, { sent: 90, bounced: 30 })
    const firings = async (changes: Partial<PolicyConfig>) =>
      (await backtestPolicy(deps, policy(changes), 1)).firings.filter(
        ({ project_id }) => project_id === project,
      )
    assert.deepEqual(await firings({ minimum_volume: 150 }), [])
    assert.equal((await firings({ minimum_volume: 90 })).length, 1)
    assert.equal((await firings({ minimum_volume: 90, cooldown_minutes: 5 })).length, 2)
    await lockByHand(project, 320, 200)
    assert.equal((await firings({ minimum_volume: 90, cooldown_minutes: 5 })).length, 0)
  })

  test('evaluates only the projects that the policy applies to', async () => {
    const [old = 0, except = 0] = await insertProjects(database, 2)
    const [young = 0] = await insertProjects(database, 1, { ageDays: 3 })
    for (const id of [old, except, young]) await addCounters(id, 100, { sent: 200, bounced: 100 })
    const ids = async (applies_to: Partial<PolicyConfig['applies_to']>) => {
      const wanted = policy({ applies_to: { ...policy().applies_to, ...applies_to } })
      return (await backtestPolicy(deps, wanted, 1)).firings
        .map(({ project_id }) => project_id)
        .filter((id) => [old, except, young].includes(id))
    }
    assert.deepEqual(await ids({ except_project_ids: [except] }), [old, young])
    assert.deepEqual(await ids({ younger_than_days: 7 }), [young])
    assert.deepEqual(await ids({ plan_ids: [1_000_000] }), [])
  })

  test('compares the volume with the four weeks before, or with the time since the first mail', async () => {
    const [steady = 0, sudden = 0, fresh = 0] = await insertProjects(database, 3)
    for (let day = 2; day <= 21; day++) {
      await addCounters(steady, day * 24 * 60, { sent: 2400 })
      await addCounters(sudden, day * 24 * 60, { sent: 240 })
    }
    for (const id of [steady, sudden, fresh]) await addCounters(id, 30, { sent: 500 })
    const spike = policy({ signal: 'volume_spike', threshold: 10, minimum_volume: 100 })
    const { firings } = await backtestPolicy(deps, spike, 1)
    const spikeOf = (id: number) => firings.find(({ project_id }) => project_id === id)?.value
    assert.equal(spikeOf(steady), undefined)
    // 4,800 recipients in 503 hours.
    assert.equal(Math.round(spikeOf(sudden) ?? 0), 52)
    assert.equal(spikeOf(fresh), 500)
  })

  test('reads the counters of a thousand projects with one statement, each row once, and no mail', async (t) => {
    const ids = await insertProjects(database, 980)
    await database.query(
      `insert into mail.sending_counters (project_id, bucket_at, sent, bounced)
       select id, date_bin('5 minutes', $2::timestamptz - (day * 24 + 1) * interval '1 hour', 'epoch'), 100, 1
         from unnest($1::bigint[]) as id, generate_series(0, 58) as day`,
      [ids, now],
    )
    const statements = recordStatements(t)
    const result = await backtestPolicy(deps, policy({ signal: 'volume_spike' }), 30)
    assert.ok(result.project_count > 980 && result.project_count <= 1000, `${result.project_count} projects`)
    assert.equal(statements.about('sending_counters'), 1)
    for (const table of ['mail.messages', 'mail.recipients', 'mail.events', 'mail.dispatch', 'mail.attempts'])
      assert.equal(statements.about(table), 0)
    statements.stop()
    const [stored] = await database.query<{ rows: number }>(
      `select count(*)::int as rows from mail.sending_counters
        where bucket_at >= $1::timestamptz - interval '58 days' - interval '2 hours'`,
      [now],
    )
    const read = await rowsRead(() => backtestPolicy(deps, policy({ signal: 'volume_spike' }), 30))
    assert.ok(read <= (stored?.rows ?? 0), `${read} of ${stored?.rows} rows`)
    assert.ok(read > 0)
  })

  test('reads fewer projects at a time after a statement timeout', async () => {
    let refusals = 2
    const impatient = Object.create(mail, {
      read: {
        value: (read: Parameters<typeof mail.read>[0]) =>
          refusals-- > 0
            ? Promise.reject(new PosternError('unavailable', 'The statement took too long.'))
            : mail.read(read),
      },
    }) as typeof mail
    const withoutRange = ({ from: _from, to: _to, ...result }: Awaited<ReturnType<typeof backtestPolicy>>) =>
      result
    const expected = withoutRange(await backtestPolicy(deps, policy(), 1))
    const result = await backtestPolicy({ ...deps, mailDbFor: () => impatient }, policy(), 1)
    assert.deepEqual(withoutRange(result), expected)
    assert.ok(result.is_complete && result.project_count > 250, `${result.project_count} projects`)
  })
})

/** The rows of counters that PostgreSQL reads during `work`. */
async function rowsRead(work: () => Promise<unknown>): Promise<number> {
  const count = async () => {
    const [row] = await database.query<{ rows: number }>(
      `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_user_tables
        where relname like 'sending_counters%'`,
    )
    return row?.rows ?? 0
  }
  const flushed = async () => {
    await mail.transaction(
      async (tx) => void (await tx.selectNoFrom((eb) => eb.fn('pg_stat_force_next_flush').as('x')).execute()),
    )
    await database.query('select pg_stat_clear_snapshot()')
    return count()
  }
  const before = await flushed()
  await work()
  return (await flushed()) - before
}
