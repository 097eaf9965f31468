import pg from 'pg'

/**
 * Several days of delivered messages, inserted by SQL. Each message is 200 bytes long and has a recipient, content, an
 * attempt, three events, the digest of its report, and counters. A few projects have sent most of the messages.
 *
 * Each day is written to separate tables that become partitions once they are filled and indexed. No index is
 * maintained row by row, and with `wal_level` minimal no WAL is written, because the tables are created in the same
 * transaction.
 */
export interface Stored {
  messages: number
  projects: number
  /** The number of days, including today. */
  days: number
}

/** Messages and recipients are retained longer than bodies. */
const keptLongerDays = 45
const tables = ['messages', 'recipients', 'bodies', 'attempts', 'events']
const fillers = 4

type Say = (text: string) => void

/** Replaces all stored messages. */
export async function fillMail(url: string, stored: Stored, say: Say): Promise<void> {
  const days = Array.from({ length: stored.days }, (_, before) => before)
  const startedAt = performance.now()
  let full = 0
  await onClients(url, 1, (client) => forget(client))
  await onClients(url, fillers, async (client) => {
    for (let before = days.pop(); before !== undefined; before = days.pop()) {
      await fillDay(client, stored, before)
      full++
      const seconds = (performance.now() - startedAt) / 1000
      say(`  ${full} of ${stored.days} days of ${stored.messages} messages, after ${seconds.toFixed(0)} s`)
    }
  })
  await onClients(url, 1, async (client) => {
    if (stored.days > 1) await emptyDays(client, stored.days, stored.days + keptLongerDays)
    await countAndIndex(client)
    await client.query('vacuum analyze')
    await client.query('reset role; checkpoint')
  })
  say(`  filled after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
}

async function onClients(
  url: string,
  count: number,
  work: (client: pg.Client) => Promise<void>,
): Promise<void> {
  const one = async (): Promise<void> => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      await client.query(`set synchronous_commit = off; set maintenance_work_mem = '256MB'; set work_mem = '64MB';
                          set temp_buffers = '256MB'; set jit = off; set session_replication_role = replica; set role postern_owner`)
      await work(client)
    } finally {
      await client.end()
    }
  }
  await Promise.all(Array.from({ length: count }, one))
}

async function forget(client: pg.Client): Promise<void> {
  await client.query(`truncate mail.dispatch, mail.usage, mail.daily_counters, mail.suppressions, mail.outbox,
                               mail.idempotency`)
  // Not done day by day, because attaching a partition locks the table until the commit.
  await client.query(`do $$ declare part regclass; begin
    for part in select inhrelid::regclass from pg_inherits
                 where inhparent in (${tables.map((table) => `'mail.${table}'::regclass`).join(', ')})
                   and to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD') <= ${dayOf(0)} loop
      execute format('drop table %s', part);
    end loop; end $$`)
}

const dayOf = (before: number): string => `((postern.now() at time zone 'UTC')::date - ${before})`

/** Messages are spread evenly over the day; for today, up to the current time. */
async function fillDay(client: pg.Client, stored: Stored, before: number): Promise<void> {
  const share = Math.floor(stored.messages / stored.days) + (before < stored.messages % stored.days ? 1 : 0)
  const { rows } = await client.query<{ name: string; first: string; end: string }>(
    `select to_char(day, '_YYYYMMDD') as name, postern.uuid7_floor(day::timestamp at time zone 'UTC') as first,
            postern.uuid7_floor((day + 1)::timestamp at time zone 'UTC') as end from (select ${dayOf(before)} as day) as one`,
  )
  const [{ name, first, end } = { name: '', first: '', end: '' }] = rows
  await client.query('begin')
  await client.query(`
    create temporary table made on commit drop as
    select n, at, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || tail)::uuid as id, tail,
           1 + floor(${stored.projects} * (random() ^ 2))::bigint as project_id, 'ada' || n || '@example.net' as address
      from (select n, overlay(substr(md5(random()::text), 1, 20) placing '7' from 1 for 1) as tail,
                   ${dayOf(before)}::timestamp at time zone 'UTC' + n * (
                     (least(postern.now() - interval '1 minute', (${dayOf(before)} + 1)::timestamp at time zone 'UTC')
                       - ${dayOf(before)}::timestamp at time zone 'UTC') / ${share + 1}) as at
              from generate_series(1, ${share}) as n) as times`)
  for (const table of tables) {
    const part = `mail.${table}${name}`
    await client.query(`create table ${part} (like mail.${table} including all excluding indexes)`)
    await client.query(`insert into ${part} ${rowsOf[table]}`)
    for (const { statement } of await indexesOf(client, table, part)) await client.query(statement)
  }
  await client.query(`insert into mail.daily_counters (project_id, day, sent, delivered)
    select project_id, ${dayOf(before)}, count(*), count(*) from made group by project_id`)
  // Done last, because it locks the table until the commit.
  for (const table of tables) {
    await client.query(
      `alter table mail.${table} attach partition mail.${table}${name} for values from ('${first}') to ('${end}')`,
    )
  }
  await client.query('commit')
}

/** Statements that create a table's indexes on a future partition. */
async function indexesOf(client: pg.Client, table: string, part: string): Promise<{ statement: string }[]> {
  const { rows } = await client.query<{ statement: string }>(
    `select case when conname is null
              then regexp_replace(pg_get_indexdef(indexrelid), '^(CREATE (UNIQUE )?INDEX) .* ON ONLY [^ ]+', '\\1 ON ' || $2)
              else 'alter table ' || $2 || ' add ' || pg_get_constraintdef(pg_constraint.oid) end as statement
       from pg_index left join pg_constraint on conindid = indexrelid and contype = 'p'
      where indrelid = $1::regclass`,
    [`mail.${table}`, part],
  )
  return rows
}

/** Older days, for which only messages and recipients are retained. These partitions are empty. */
async function emptyDays(client: pg.Client, from: number, to: number): Promise<void> {
  for (const table of ['messages', 'recipients']) {
    for (let before = from; before < to; before++) {
      await client.query(`do $$ declare day date := ${dayOf(before)}; begin
        execute format('create table if not exists mail.%I partition of mail.${table} for values from (%L) to (%L)',
          '${table}' || to_char(day, '_YYYYMMDD'), postern.uuid7_floor(day::timestamp at time zone 'UTC'),
          postern.uuid7_floor((day + 1)::timestamp at time zone 'UTC')); end $$`)
    }
  }
}

/** Data that is not specific to a day. */
async function countAndIndex(client: pg.Client): Promise<void> {
  await client.query(`insert into mail.usage (project_id, period, starts_on, accepted)
    select project_id, period, date_trunc(period, postern.now() at time zone 'UTC')::date,
           coalesce(sum(sent) filter (where day >= date_trunc(period, postern.now() at time zone 'UTC')::date), 0)
      from mail.daily_counters, unnest(array['day', 'month']) as period group by project_id, period`)
  await client.query(`insert into mail.suppressions (project_id, address, reason)
    select id, 'gone' || n || '@example.net', 'bounce' from control.projects, generate_series(1, 3) as n`)
}

const reply = `'250 2.0.0 Ok: queued as 4bX' || upper(substr(tail, 9, 10))`
// Built as text: with JSON functions, this step took as long as everything else combined.
const content = `convert_to('{"from":{"name":"Shop","address":"shop@sender' || project_id || '.example.com"},"to":[{"name":null,'
  || '"address":"' || address || '"}],"cc":[],"reply_to":[],"subject":"Your order is on its way","text":"'
  || repeat(tail || ' word ', 8) || '","html":null,"headers":[],"attachments":[]}', 'UTF8')`

/** Excludes generated columns. */
const rowsOf: Record<string, string> = {
  messages: `(id, project_id, identity_id, api_key_id, from_address, subject, recipient_count, size_bytes, created_at)
    select id, project_id, project_id, project_id, 'shop@sender' || project_id || '.example.com',
           'Your order is on its way', 1, 200, at from made`,
  recipients: `(message_id, recipient_no, project_id, kind, address, status, reply, updated_at)
    select id, 0, project_id, 'to', address, 'delivered', '250 2.0.0 Ok', at + interval '5 seconds' from made`,
  bodies: `(message_id, project_id, format, content) select id, project_id, 'json', ${content} from made`,
  attempts: `(message_id, recipient_no, attempt, project_id, provider, host, queue_id, outcome, reply, started_at,
              finished_at)
    select id, 0, 1, project_id, 'service', '127.0.0.1:25', '4bX' || upper(substr(tail, 9, 10)), 'sent', ${reply},
           at, at + interval '1 second' from made`,
  events: `(id, project_id, type, message_id, recipient_no, data, created_at)
    -- Within the day of this partition.
    select (lpad(to_hex((extract(epoch from least(event_row.at, date_trunc('day', made.at, 'UTC') + interval '23:59:59.999'))
              * 1000)::bigint), 12, '0') || overlay(tail placing event_row.place from 18 for 1))::uuid,
           project_id, event_row.type, id, event_row.no, event_row.data, event_row.at
      from made cross join lateral (values
        (at, '0', 'message.accepted', null::smallint, '{"recipients": 1}'::jsonb),
        (at + interval '1 second', '1', 'message.sent', 0,
         jsonb_build_object('recipient', address, 'status', null, 'diagnostic', ${reply})),
        (at + interval '5 seconds', '2', 'message.delivered', 0,
         jsonb_build_object('recipient', address, 'status', '2.0.0', 'diagnostic', '250 2.0.0 Ok')))
        as event_row (at, place, type, no, data)`,
}
