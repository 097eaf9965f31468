-- The mail plane as far as it is known. Every hot key starts with `shard`, so that a cell can take a range
-- of shards to its own machine. No foreign key leaves the schema. Tables that grow without end are
-- partitioned by ranges of the UUIDv7 itself: an id alone finds its partition, and old partitions are
-- dropped whole. The worker makes the partitions ahead of time; this file makes none.

create table mail.messages (
  id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  -- The identity the message was accepted under, and is signed with, whatever the domain becomes later.
  identity_id bigint not null,
  api_key_id bigint,
  is_test boolean not null default false,
  from_address text not null,
  recipients jsonb not null,
  subject text not null default '',
  tags text[] not null default '{}',
  metadata jsonb not null default '{}',
  size_bytes integer not null check (size_bytes >= 0),
  send_at timestamptz,
  created_at timestamptz not null default postern.now(),
  primary key (shard, id)
) partition by range (id);
create index on mail.messages (shard, project_id, id);

create table mail.bodies (
  message_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  mime bytea not null,
  primary key (shard, message_id)
) partition by range (message_id);

-- One row per recipient while there is work to do; deleted when the last word is said.
-- ready → leased → (deleted | deferred | ready again when the lease runs out); held ↔ ready.
create table mail.dispatch (
  message_id uuid not null,
  recipient_no smallint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  identity_id bigint not null,
  recipient text not null,
  state text not null default 'ready' check (state in ('ready', 'leased', 'deferred', 'held')),
  due_at timestamptz not null default postern.now(),
  -- The fence: a worker may finalise only the attempt it was given.
  attempt integer not null default 0,
  leased_until timestamptz,
  expires_at timestamptz not null,
  primary key (shard, message_id, recipient_no)
);
create index on mail.dispatch (shard, project_id, due_at) where state = 'ready';
create index on mail.dispatch (shard, leased_until) where state = 'leased';
create index on mail.dispatch (shard, due_at) where state = 'deferred';
-- "Does mail still wait under this identity?", before it is deregistered.
create index on mail.dispatch (shard, project_id, identity_id);

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
  outcome text,
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
  reason text not null,
  message_id uuid,
  created_at timestamptz not null default postern.now(),
  primary key (shard, project_id, address)
);

-- Mails accepted in a UTC day or a calendar month: the row that a quota check locks.
create table mail.usage (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  period text not null check (period in ('day', 'month')),
  starts_on date not null,
  accepted bigint not null default 0 check (accepted >= 0),
  primary key (shard, project_id, period, starts_on)
);

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
call postern.protect('mail.bodies');
call postern.protect('mail.dispatch');
call postern.protect('mail.attempts');
call postern.protect('mail.events');
call postern.protect('mail.deliveries');
call postern.protect('mail.suppressions');
call postern.protect('mail.usage');
call postern.protect('mail.idempotency');
call postern.protect('mail.outbox');

-- The administrative plane looks; what it wants changed here goes through control.outbox.
grant select, insert, update, delete on all tables in schema mail to postern_mail;
grant select on all tables in schema mail to postern_admin;
grant select on mail.messages, mail.bodies, mail.attempts, mail.events, mail.deliveries, mail.suppressions,
  mail.usage to postern_customer;
grant insert, delete on mail.suppressions to postern_customer;
grant select on mail.messages, mail.dispatch, mail.attempts, mail.events, mail.deliveries, mail.suppressions,
  mail.usage, mail.outbox, mail.control_applied to postern_readonly;
