-- The mail plane. Every hot key starts with `shard`, so that a cell can take a range of shards to its own machine. No
-- foreign key leaves the schema. Tables that grow without end are partitioned by ranges of the UUIDv7 itself: an id
-- alone finds its partition, and old partitions are dropped whole (mail.keep_partitions, at the end of this file).

create table mail.messages (
  id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  -- The identity the message was accepted under, and is signed with, whatever the domain becomes later.
  identity_id bigint not null,
  -- Who sent it: a key or a member.
  api_key_id bigint,
  user_id bigint,
  is_test boolean not null default false,
  from_address text not null,
  subject text not null default '',
  tags text[] not null default '{}',
  metadata jsonb not null default '{}',
  recipient_count smallint not null check (recipient_count > 0),
  size_bytes integer not null check (size_bytes >= 0),
  send_at timestamptz,
  created_at timestamptz not null default postern.now(),
  primary key (shard, id)
) partition by range (id);
create index on mail.messages (shard, project_id, id);

-- What became of each recipient. Statuses, and who moves them:
--   scheduled → queued, canceled        the time has come (worker); somebody asked (API)
--   queued → sent                       handed over to the MTA (worker)
--   queued → deferred → sent            the MTA would not take it yet (worker)
--   queued → failed, bounced            the MTA would never take it, or not in time (worker)
--   sent ↔ deferred                     the MTA reports a delay (intake)
--   sent, deferred → delivered, bounced, failed     the MTA's last word (intake)
--   sent, delivered → complained; delivered → bounced     what comes late (intake)
--   suppressed                          from the start: left out (API)
-- The intake may be faster than the worker: from queued it goes wherever it would go from sent.
create table mail.recipients (
  message_id uuid not null,
  recipient_no smallint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  kind text not null check (kind in ('to', 'cc', 'bcc')),
  address text not null,
  status text not null check (status in ('scheduled', 'queued', 'sent', 'deferred', 'delivered', 'bounced', 'failed',
                                         'complained', 'suppressed', 'canceled')),
  -- The last thing that was said about it, by a machine.
  reply text,
  updated_at timestamptz not null default postern.now(),
  primary key (shard, message_id, recipient_no)
) partition by range (message_id);
-- No index names `status`: a change of it stays on its page (HOT), two or three times in a mail's life.
create index on mail.recipients (shard, project_id, lower(address), message_id);

create table mail.bodies (
  message_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  -- `json`: the content as it was given, composed when it is sent; `mime`: as it was submitted.
  format text not null check (format in ('json', 'mime')),
  content bytea compression lz4 not null,
  primary key (shard, message_id)
) partition by range (message_id);

-- One row per recipient while there is something to do, deleted when it is handed over or given up.
--   ready → leased           claimed; a committed lease
--   leased → (deleted)       sent, or given up
--   leased → deferred        not now; `due_at` says when
--   leased → ready           the lease ran out: whoever had it is gone
--   deferred, scheduled → ready     the time has come
-- A project that is locked or held has rows like any other; nobody claims them. Whatever becomes ready is due from that
-- moment, so `due_at` of ready rows only ever grows.
create table mail.dispatch (
  message_id uuid not null,
  recipient_no smallint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  identity_id bigint not null,
  -- `none`: of a key for tests, which hands nothing over.
  provider text not null check (provider in ('service', 'ses', 'none')),
  -- Large mails are a lane of their own: few are in memory at once, and they keep no small mail waiting.
  is_large boolean not null default false,
  recipient text not null,
  state text not null default 'ready' check (state in ('ready', 'leased', 'deferred', 'scheduled')),
  due_at timestamptz not null default postern.now(),
  -- The fence: a worker may finalise only the attempt it was given.
  attempt integer not null default 0,
  leased_until timestamptz,
  -- When it was first attempted: from then on it is tried for a limited time.
  first_attempt_at timestamptz,
  primary key (shard, message_id, recipient_no)
);
create index dispatch_ready on mail.dispatch (shard, project_id, provider, is_large, due_at)
  where state = 'ready';
-- Swept in order of time over all shards, so these do not begin with one.
create index dispatch_leased on mail.dispatch (leased_until) where state = 'leased';
create index dispatch_waiting on mail.dispatch (due_at) where state in ('deferred', 'scheduled');
-- "Does mail still wait under this identity?", before it is deregistered.
create index dispatch_identity on mail.dispatch (shard, project_id, identity_id);

create table mail.attempts (
  message_id uuid not null,
  recipient_no smallint not null,
  attempt integer not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  provider text not null,
  host text,
  -- What the MTA called it: names what is already handed over when a project is locked.
  queue_id text,
  outcome text not null check (outcome in ('sent', 'deferred', 'refused', 'unreachable')),
  reply text,
  started_at timestamptz not null default postern.now(),
  finished_at timestamptz,
  primary key (shard, message_id, recipient_no, attempt)
) partition by range (message_id);

create table mail.events (
  id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  type text not null,
  message_id uuid,
  recipient_no smallint,
  data jsonb not null,
  created_at timestamptz not null default postern.now(),
  primary key (shard, id)
) partition by range (id);
create index on mail.events (shard, project_id, id);
create index on mail.events (shard, message_id) where message_id is not null;

-- What was heard already: a report delivered twice is one event.
create table mail.feedback_seen (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  digest bytea not null check (length(digest) = 32),
  seen_at timestamptz not null default postern.now(),
  primary key (shard, project_id, digest)
);
create index on mail.feedback_seen (seen_at);

-- Events on their way to an endpoint.
create table mail.deliveries (
  endpoint_id bigint not null,
  event_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  attempt integer not null default 0,
  due_at timestamptz not null default postern.now(),
  leased_until timestamptz,
  primary key (shard, endpoint_id, event_id)
);

create table mail.suppressions (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  address text not null check (address = lower(address)),
  reason text not null check (reason in ('bounce', 'complaint', 'manual')),
  -- What led to it.
  message_id uuid,
  created_at timestamptz not null default postern.now(),
  primary key (shard, project_id, address)
);
-- "How many has the project suppressed manually?", up to its cap.
create index on mail.suppressions (shard, project_id) where reason = 'manual';

-- Mails accepted in a UTC day or a calendar month: the row that a quota check locks.
create table mail.usage (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  period text not null check (period in ('day', 'month')),
  starts_on date not null,
  accepted bigint not null default 0 check (accepted >= 0),
  primary key (shard, project_id, period, starts_on)
) with (fillfactor = 50);

-- What became of mail, by the UTC day on which it became so. Never dropped: a project's lifetime counts are its sums.
create table mail.daily (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  day date not null,
  sent bigint not null default 0,
  delivered bigint not null default 0,
  deferred bigint not null default 0,
  bounced bigint not null default 0,
  failed bigint not null default 0,
  complained bigint not null default 0,
  suppressed bigint not null default 0,
  primary key (shard, project_id, day)
) with (fillfactor = 50);

create table mail.idempotency (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  actor text not null,
  operation text not null,
  key text not null,
  request_hash bytea not null check (length(request_hash) = 32),
  status smallint not null,
  body json not null,
  created_at timestamptz not null default postern.now(),
  expires_at timestamptz not null,
  primary key (shard, project_id, actor, operation, key)
);
create index on mail.idempotency (expires_at);

-- What control has to be told of a project; read, applied there, deleted here.
create table mail.outbox (
  id bigint generated always as identity primary key,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  topic text not null,
  payload jsonb not null,
  created_at timestamptz not null default postern.now()
);

-- Which rows of control.outbox this cell has applied.
create table mail.control_applied (
  outbox_id bigint primary key,
  applied_at timestamptz not null default postern.now()
);

call postern.protect('mail.messages');
call postern.protect('mail.recipients');
call postern.protect('mail.bodies');
call postern.protect('mail.dispatch');
call postern.protect('mail.attempts');
call postern.protect('mail.events');
call postern.protect('mail.feedback_seen');
call postern.protect('mail.deliveries');
call postern.protect('mail.suppressions');
call postern.protect('mail.usage');
call postern.protect('mail.daily');
call postern.protect('mail.idempotency');
call postern.protect('mail.outbox');

-- The administrative plane looks; what it wants changed here goes through control, or is asked of the mail plane.
grant select, insert, update, delete on all tables in schema mail to postern_mail;
grant select on all tables in schema mail to postern_admin;
grant select on mail.messages, mail.recipients, mail.bodies, mail.dispatch, mail.attempts, mail.events, mail.deliveries,
  mail.suppressions, mail.usage, mail.daily to postern_customer;
grant select on mail.messages, mail.recipients, mail.dispatch, mail.attempts, mail.events, mail.deliveries,
  mail.suppressions, mail.usage, mail.daily, mail.outbox, mail.control_applied to postern_readonly;

-- One partition per UTC day of each table that is cut so: made ahead, and dropped when it is older than it is kept for
-- and nothing that is still to be sent points into it. The mail plane may not make tables; it may call this, which makes
-- and drops no others. Returns what it did.
create function mail.keep_partitions(ahead_days integer, kept_days integer)
returns table (made integer, dropped integer)
language plpgsql security definer set search_path = pg_catalog as $$
declare
  cut text;
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
  foreach cut in array array['messages', 'recipients', 'bodies', 'attempts', 'events'] loop
    -- Yesterday too, for a clock that is set back a little.
    for day in select generate_series(today - 1, today + ahead_days, interval '1 day')::date loop
      continue when to_regclass(format('mail.%I', cut || to_char(day, '_YYYYMMDD'))) is not null;
      execute format(
        'create table mail.%I partition of mail.%I for values from (%L) to (%L)',
        cut || to_char(day, '_YYYYMMDD'), cut,
        postern.uuid7_floor(day::timestamp at time zone 'UTC'),
        postern.uuid7_floor((day + 1)::timestamp at time zone 'UTC'));
      made := made + 1;
    end loop;
    for part in
      select child.relname, to_date(right(child.relname, 8), 'YYYYMMDD') as day
      from pg_inherits
      join pg_class child on child.oid = inhrelid
      where inhparent = format('mail.%I', cut)::regclass and child.relname ~ '_[0-9]{8}$'
    loop
      -- Reports come late, and mail may be accepted a month before it is sent: what they speak of is kept for longer.
      continue when part.day >= today - kept_days
                      - case when cut in ('messages', 'recipients') then 45 else 0 end;
      beginning := postern.uuid7_floor(part.day::timestamp at time zone 'UTC');
      continue when cut <> 'events' and exists (
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
revoke execute on function mail.keep_partitions from public;
grant execute on function mail.keep_partitions to postern_mail;

-- So that mail can be accepted before a worker has run.
select mail.keep_partitions(14, 3660);
