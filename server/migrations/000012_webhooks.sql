-- Events on their way to endpoints.
--
-- An event is one row, and a row of mail.fan_outs from which a worker makes one delivery for each endpoint
-- (000018_results_and_fan_out.sql). An endpoint has one queue, and that one timer: a receiver that is dead is tried once each
-- time it is due, however much waits for it, and keeps nobody else waiting.
--
-- A queue (mail.endpoint_queues):
--   idle    due_at is null      nothing waits for it
--   due     due_at is past      a worker takes it: a lease, and a number that fences off whoever had it before
--   leased  leased_until is set, and due_at is the same: its deliveries are under way, and whoever dies leaves it due when
--           the lease is over. Nothing wakes it; whoever gives it back sees what has come meanwhile
--   parked  due_at is to come   it rests (rests_until), because it failed, or what waits is not due yet
-- A delivery (mail.deliveries) has no state of its own: it waits, and is deleted when it was taken, given up or became
-- needless. What happened is told by mail.delivery_attempts.
drop table mail.deliveries;

create table mail.deliveries (
  endpoint_id bigint not null,
  event_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  attempt integer not null default 0,
  due_at timestamptz not null default postern.now(),
  -- When it is given up; a replay has all the time again.
  gives_up_at timestamptz not null,
  primary key (shard, endpoint_id, event_id)
);
-- In the order in which they are sent. One that failed is due later, and so behind whatever waits meanwhile: none stands
-- in the way of others.
create index on mail.deliveries (shard, endpoint_id, due_at, event_id);

create table mail.endpoint_queues (
  endpoint_id bigint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  due_at timestamptz,
  leased_until timestamptz,
  -- The fence: only whoever holds this lease may write down what became of it.
  lease bigint not null default 0,
  -- It failed, or asked to be left alone: nothing wakes it before. Past or null: whatever comes makes it due at once.
  rests_until timestamptz,
  -- Times in a row that nothing was taken, and since when.
  failures integer not null default 0,
  failing_since timestamptz,
  last_success_at timestamptz,
  -- When control was last told of it, which is once a minute at most unless it begins or ends to fail.
  told_at timestamptz,
  -- Whether the last time went well, or there was none yet. Others have few places in a worker, and none of these.
  is_proven boolean not null generated always as (failures = 0) stored,
  primary key (shard, endpoint_id)
) with (fillfactor = 50);
create index on mail.endpoint_queues (is_proven, due_at) where due_at is not null;

-- "Something waits for this endpoint." Added with each delivery, so that those who insert deliveries never wait for one
-- another at the row of a queue, and taken by a worker.
create table mail.wakes (
  id bigint generated always as identity primary key,
  endpoint_id bigint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored
);

create table mail.delivery_attempts (
  -- UUIDv7: by the time at which it began.
  id uuid not null,
  endpoint_id bigint not null,
  event_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  event_type text not null,
  attempt integer not null,
  -- `delivered`: 2xx. `failed`: tried again. `given_up`: the last of its time. `gone`: 410, which switches the endpoint off.
  outcome text not null check (outcome in ('delivered', 'failed', 'given_up', 'gone')),
  -- Of the answer; null where there was none, and then `error` says why.
  status smallint,
  latency_ms integer not null check (latency_ms >= 0),
  response text,
  error text,
  primary key (shard, id)
) partition by range (id);
create index on mail.delivery_attempts (shard, endpoint_id, id);
create index on mail.delivery_attempts (shard, endpoint_id, event_id);

-- Ranges of time that are delivered once more, a little at a time. One per endpoint.
create table mail.replays (
  endpoint_id bigint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  from_id uuid not null,
  to_id uuid not null,
  -- Up to here, events were looked at.
  cursor uuid,
  -- Those that were taken once are left out.
  only_undelivered boolean not null,
  due_at timestamptz not null default postern.now(),
  created_at timestamptz not null default postern.now(),
  primary key (shard, endpoint_id)
);
create index on mail.replays (due_at);

call postern.protect('mail.deliveries');
call postern.protect('mail.endpoint_queues');
call postern.protect('mail.wakes');
call postern.protect('mail.delivery_attempts');
call postern.protect('mail.replays');

grant select, insert, update, delete
  on mail.deliveries, mail.endpoint_queues, mail.wakes, mail.delivery_attempts, mail.replays to postern_mail;
grant select on mail.deliveries, mail.endpoint_queues, mail.wakes, mail.delivery_attempts, mail.replays
  to postern_admin, postern_readonly;
grant select on mail.deliveries, mail.endpoint_queues, mail.delivery_attempts, mail.replays to postern_customer;

-- "Does the project have an active endpoint?", asked with every event, and "which are the next ones?" of its fan-out.
create index on control.endpoints (project_id, id) where is_active;

-- Which tables are cut by days; whether mail that is still to be sent holds a day back; and for how many days longer than
-- others they are kept. Reports come late, and mail may be accepted a month before it is sent.
create function mail.cut_tables() returns table (name text, holds_mail boolean, longer_days integer)
language sql immutable set search_path = pg_catalog as $$
  values ('messages', true, 45), ('recipients', true, 45), ('bodies', true, 0), ('attempts', true, 0),
         ('events', false, 0), ('delivery_attempts', false, 0)
$$;
revoke execute on function mail.cut_tables from public;

-- One partition per UTC day of each table that is cut so: made ahead, and dropped when it is older than it is kept for
-- and nothing that is still to be sent points into it. The mail plane may not make tables; it may call this, which makes
-- and drops no others. Returns what it did.
create or replace function mail.keep_partitions(ahead_days integer, kept_days integer)
returns table (made integer, dropped integer)
language plpgsql security definer set search_path = pg_catalog as $$
declare
  cut record;
  day date;
  today date := (postern.now() at time zone 'UTC')::date;
  part record;
  beginning uuid;
begin
  -- Written so that a null is refused: compared with one, no partition is young enough to be kept.
  if (ahead_days between 1 and 60 and kept_days between 1 and 3660) is not true then
    raise exception 'between 1 and 60 days ahead, and kept for 1 to 3660 days';
  end if;
  made := 0;
  dropped := 0;
  -- One at a time: two would both find that a partition is missing.
  perform pg_advisory_xact_lock(hashtextextended('mail.keep_partitions', 0));
  for cut in select * from mail.cut_tables() loop
    -- Yesterday too, for a clock that is set back a little.
    for day in select generate_series(today - 1, today + ahead_days, interval '1 day')::date loop
      continue when to_regclass(format('mail.%I', cut.name || to_char(day, '_YYYYMMDD'))) is not null;
      execute format(
        'create table mail.%I partition of mail.%I for values from (%L) to (%L)',
        cut.name || to_char(day, '_YYYYMMDD'), cut.name,
        postern.uuid7_floor(day::timestamp at time zone 'UTC'),
        postern.uuid7_floor((day + 1)::timestamp at time zone 'UTC'));
      made := made + 1;
    end loop;
    for part in
      select child.relname, to_date(right(child.relname, 8), 'YYYYMMDD') as day
      from pg_inherits
      join pg_class child on child.oid = inhrelid
      where inhparent = format('mail.%I', cut.name)::regclass and child.relname ~ '_[0-9]{8}$'
    loop
      continue when part.day >= today - kept_days - cut.longer_days;
      beginning := postern.uuid7_floor(part.day::timestamp at time zone 'UTC');
      continue when cut.holds_mail and exists (
        select from mail.dispatch
        where message_id >= beginning
          and message_id < postern.uuid7_floor((part.day + 1)::timestamp at time zone 'UTC'));
      execute format('drop table mail.%I', part.relname);
      dropped := dropped + 1;
    end loop;
  end loop;
  return next;
end
$$;

select mail.keep_partitions(14, 3660);
