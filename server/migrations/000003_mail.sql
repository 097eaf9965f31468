-- The mail schema. Every hot key starts with `shard`, so a range of shards can be moved to another cell. No foreign key
-- references another schema. Tables that grow indefinitely are partitioned by ranges of their UUIDv7 key: the id determines
-- the partition, and old partitions are dropped as a whole (mail.maintain_partitions).

-- Messages.

create table mail.messages (
  id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  -- The identity for which the message was accepted and with which it is signed, regardless of later changes to the domain.
  identity_id bigint not null,
  -- The sender: an API key or a member.
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
  -- For a forwarded message: {"envelope_from", "smtputf8", "is_sender_confirmed"}. The message is sent unchanged with a
  -- rewritten sender (SRS), and is not signed for the domain. Null for all other messages.
  forwarded jsonb,
  -- The OpenTelemetry trace id and span id, 24 octets, to continue the trace in the process that sends the message. Null
  -- unless the trace is recorded.
  trace bytea,
  created_at timestamptz not null default postern.now(),
  primary key (shard, id)
) partition by range (id);
create index on mail.messages (shard, project_id, id);
call postern.protect('mail.messages');
grant select, insert, update, delete on mail.messages to postern_mail;
grant select on mail.messages to postern_admin, postern_customer, postern_readonly;

-- Recipients of messages. Statuses, and the component that changes them:
--   scheduled → queued, canceled        send_at is past (worker); canceled by request (API)
--   queued → sent                       handed off to the MTA (worker)
--   queued → deferred → sent            the MTA rejected it temporarily (worker)
--   queued → failed, bounced            the MTA rejected it permanently, or it expired (worker)
--   sent ↔ deferred                     the MTA reports a delay (intake)
--   sent, deferred → delivered, bounced, failed     the MTA's final report (intake)
--   sent, delivered → complained; delivered → bounced     late reports (intake)
--   suppressed                          at acceptance: the address is suppressed (API)
--   queued → failed                     SES: no report within an hour of an unknown outcome (worker)
--   scheduled, queued, deferred → failed     discarded by an administrator (control worker)
-- A report can arrive before the worker has recorded the handoff. The intake therefore treats queued like sent in the
-- transitions above.
create table mail.recipients (
  message_id uuid not null,
  recipient_no smallint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  kind text not null check (kind in ('to', 'cc', 'bcc')),
  address text not null,
  status text not null check (status in ('scheduled', 'queued', 'sent', 'deferred', 'delivered', 'bounced', 'failed',
                                         'complained', 'suppressed', 'canceled')),
  -- The last reply or diagnostic from a remote server.
  reply text,
  -- The digests of the reports that were applied to this recipient, 16 octets each. A report that arrives twice causes one
  -- event. Everyone who receives the message knows its return path and can send any number of reports, so
  -- core/mail/feedback limits them to 40 and one complaint. Not indexed, so updates stay on the same page (HOT).
  report_digests bytea not null default '' check (length(report_digests) <= 656),
  updated_at timestamptz not null default postern.now(),
  primary key (shard, message_id, recipient_no)
) partition by range (message_id);
-- No index contains `status`, so its two or three updates stay on the same page (HOT).
create index on mail.recipients (shard, project_id, lower(address), message_id);
-- For searches by administrators across all projects.
create index on mail.recipients (lower(address), message_id);
call postern.protect('mail.recipients');
grant select, insert, update, delete on mail.recipients to postern_mail;
grant select on mail.recipients to postern_admin, postern_customer, postern_readonly;

create table mail.bodies (
  message_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  -- `json`: the content as submitted; the message is composed when it is sent. `mime`: the message as submitted over SMTP.
  format text not null check (format in ('json', 'mime')),
  content bytea compression lz4 not null,
  primary key (shard, message_id)
) partition by range (message_id);
call postern.protect('mail.bodies');
grant select, insert, update, delete on mail.bodies to postern_mail;
grant select on mail.bodies to postern_admin, postern_customer;

-- Bodies of messages that are still queued (scheduled, deferred or held) when their daily partition of mail.bodies is
-- dropped. Partitioned by the last day of the retention period.
create table mail.waiting_bodies (
  message_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  format text not null check (format in ('json', 'mime')),
  content bytea compression lz4 not null,
  kept_until date not null,
  primary key (shard, message_id, kept_until)
) partition by range (kept_until);
call postern.protect('mail.waiting_bodies');
grant select on mail.waiting_bodies to postern_mail;

-- Dispatch: the handoff of mail to a provider.

-- The queue. One row per recipient until it is handed off or abandoned.
--   ready → leased           claimed; a committed lease (worker)
--   leased → (deleted)       sent or abandoned (worker)
--   leased → deferred        temporary failure; `due_at` is the next attempt (worker)
--   leased → awaiting        possibly sent, and the provider must not be called twice; for an hour (worker)
--   leased → ready           the lease expired without a recorded attempt: the worker crashed (worker)
--   leased → awaiting        the lease expired with a recorded attempt (worker)
--   awaiting → (deleted)     the provider reported that it accepted the message (intake), its response was read late
--                            (worker), or the hour is over: the message has failed, and its event says that it may have
--                            been sent (worker)
--   awaiting → deferred      the response was read late and was a rejection (worker)
--   deferred, scheduled → ready     due (worker)
--   any → (deleted)          a final report about the recipient arrived (intake)
--   ready, deferred, scheduled → (deleted)     discarded by an administrator (control worker)
--
-- A provider that cannot deduplicate requests and that reports accepted messages (Amazon SES) is called at most once per
-- message, unless it definitely did not accept the message. An attempt is therefore recorded before the call, and a message
-- with an unknown outcome awaits the provider's report. Messages in `awaiting` are never claimed, so they are never sent
-- again. Messages of locked and held projects are also in the queue but are not claimed. The `due_at` of ready rows only
-- increases.
create table mail.dispatch (
  message_id uuid not null,
  recipient_no smallint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  identity_id bigint not null,
  -- `none`: for a test key. Nothing is handed off.
  provider text not null check (provider in ('service', 'ses', 'none')),
  -- Large messages have a separate lane, so that only a few are in memory at the same time and small messages are not
  -- delayed.
  is_large boolean not null default false,
  recipient text not null,
  state text not null default 'ready' check (state in ('ready', 'leased', 'deferred', 'scheduled', 'awaiting')),
  due_at timestamptz not null default postern.now(),
  -- The fencing token: a worker can record only the attempt that it has claimed.
  attempt integer not null default 0,
  leased_until timestamptz,
  -- The time of the first attempt. Retries end a fixed time after the first attempt.
  first_attempt_at timestamptz,
  primary key (shard, message_id, recipient_no)
);
create index dispatch_ready on mail.dispatch (shard, project_id, provider, is_large, due_at)
  where state = 'ready';
-- Rows are swept in chronological order across all shards, so these indexes do not start with the shard.
create index dispatch_leased on mail.dispatch (leased_until) where state = 'leased';
create index dispatch_waiting on mail.dispatch (due_at) where state in ('deferred', 'scheduled');
-- Finds mail queued for an identity. Read before the identity is deregistered.
create index dispatch_identity on mail.dispatch (shard, project_id, identity_id);
create index dispatch_awaiting on mail.dispatch (due_at) where state = 'awaiting';
call postern.protect('mail.dispatch');
grant select, insert, update, delete on mail.dispatch to postern_mail;
grant select on mail.dispatch to postern_admin, postern_customer, postern_readonly;

-- One row for each paced project (control.queue_restrictions), shared by all of its lanes and all workers: the generic cell
-- rate algorithm. Each claimed recipient moves `next_at` by the interval between two recipients, starting from the current
-- time if `next_at` is past or belongs to another pace. Recipients can be claimed while `next_at` is less than a short burst ahead. A row whose time is
-- past has no meaning and is purged.
create table mail.paces (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  -- The pace at the last claim. Null before the first one.
  pace_per_hour integer,
  next_at timestamptz not null default postern.now(),
  primary key (shard, project_id)
) with (fillfactor = 50);
call postern.protect('mail.paces');
grant select, insert, update, delete on mail.paces to postern_mail;
grant select on mail.paces to postern_admin, postern_customer, postern_readonly;

-- The progress of discards (control.discards). Each batch updates the row in the transaction that discards its recipients, so
-- the count is exact. The row's lock lets one worker at a time execute a discard. A discard reads the queue in passes, in key
-- order, because a pass skips rows that are locked, being sent, or perhaps accepted by the MTA. A pass that finds nothing is the last
-- one.
create table mail.discards (
  id bigint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  -- The last row of mail.dispatch that this pass has read. Null at the start of a pass.
  cursor_message_id uuid,
  cursor_recipient_no smallint,
  -- Whether this pass has found a recipient to discard, locked or not, and whether it has discarded one.
  has_found boolean not null default false,
  has_discarded boolean not null default false,
  -- When control.discards was changed last before this pass: a pass that was interrupted by a stop is not the last one.
  pass_of timestamptz,
  discarded bigint not null default 0,
  finished_at timestamptz,
  updated_at timestamptz not null default postern.now(),
  primary key (shard, id)
);
call postern.protect('mail.discards');
grant select, insert, update, delete on mail.discards to postern_mail;
grant select on mail.discards to postern_admin, postern_readonly;

-- Attempts to hand off messages. Outcomes:
--   begun        recorded before the call; the response has not been read yet
--   sent, deferred, refused, unreachable     the response, or no connection
--   unknown      the call was made, and its response is missing or inconclusive
create table mail.attempts (
  message_id uuid not null,
  recipient_no smallint not null,
  attempt integer not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  provider text not null,
  host text,
  -- The MTA's queue id, to identify messages that were handed off before a project was locked.
  queue_id text,
  outcome text not null check (outcome in ('begun', 'sent', 'deferred', 'refused', 'unreachable', 'unknown')),
  reply text,
  started_at timestamptz not null default postern.now(),
  finished_at timestamptz,
  primary key (shard, message_id, recipient_no, attempt)
) partition by range (message_id);
-- An attempt at an MTA is inserted with its result, so the index prevents no HOT update. MTAs' queue ids increase with time,
-- and in byte order new entries go to the last page of the index.
create index on mail.attempts ((queue_id collate "C")) where queue_id is not null;
call postern.protect('mail.attempts');
grant select, insert, update, delete on mail.attempts to postern_mail;
grant select on mail.attempts to postern_admin, postern_customer, postern_readonly;

-- The result of an attempt, committed together with the end of the attempt. The transaction that later deletes the row
-- writes the resulting events, counters and suppressions. They are therefore written exactly once, and a failure in that
-- transaction cannot cause the message to be sent again.
--   (inserted)               the attempt ended, or the message expired (worker)
--   → (deleted)              published (worker), or published with a later report about the recipient (intake)
-- `due_at` is a lease: the worker that wrote the row publishes it immediately. After `due_at`, any worker does. There is no
-- index, because rows are few and short-lived and an index would add a cost to every message.
create table mail.attempt_results (
  message_id uuid not null,
  recipient_no smallint not null,
  attempt integer not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  type text not null check (type in ('sent', 'deferred', 'bounced', 'failed')),
  -- For a test key: `sent` is followed by `delivered`, and the two events are not counted.
  is_test boolean not null,
  -- The operator ended it: a discard, or mail that could not be sent for too long.
  is_ended_by_operator boolean not null default false,
  recipient text not null,
  -- RFC 3463, if the MTA sent one.
  status text,
  diagnostic text,
  due_at timestamptz not null default postern.now() + interval '10 seconds',
  primary key (shard, message_id, recipient_no, attempt, type)
);
call postern.protect('mail.attempt_results');
grant select, insert, update, delete on mail.attempt_results to postern_mail;
grant select on mail.attempt_results to postern_admin, postern_readonly;

-- Events and their delivery to endpoints.

create table mail.events (
  id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  type text not null,
  message_id uuid,
  recipient_no smallint,
  data jsonb not null,
  -- For `inbound.received`: the row in mail.inbound_bodies with the data shared by all of the message's events. Both are
  -- partitioned by day and retained for the same time.
  inbound_body_id uuid,
  created_at timestamptz not null default postern.now(),
  primary key (shard, id)
) partition by range (id);
create index on mail.events (shard, message_id) where message_id is not null;
call postern.protect('mail.events');
grant select, insert, update, delete on mail.events to postern_mail;
grant select on mail.events to postern_admin, postern_customer, postern_readonly;

-- Events for which some deliveries have not been inserted yet. A worker inserts a bounded number per transaction, and
-- deletes the row after the last endpoint.
create table mail.fan_outs (
  event_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  type text not null,
  -- An endpoint that receives the event even though it is not subscribed to the event's type.
  endpoint_id bigint,
  -- Endpoints up to this id have a delivery.
  after_endpoint_id bigint not null default 0,
  primary key (shard, project_id, event_id)
);
call postern.protect('mail.fan_outs');
grant select, insert, update, delete on mail.fan_outs to postern_mail;
grant select on mail.fan_outs to postern_admin, postern_readonly;

-- Webhook deliveries.
--
-- An event is one row, plus a row in mail.fan_outs from which a worker inserts one delivery per endpoint. Each endpoint has
-- one queue with one timer: an unreachable receiver is tried once whenever the queue is due, regardless of the number of
-- waiting deliveries, and does not delay other endpoints.
--
-- A queue (mail.endpoint_queues):
--   idle    due_at is null        no delivery waits
--   due     due_at is past        a worker claims it: a lease with a fencing token
--   leased  leased_until is set   and due_at is the same: if the worker crashes, the queue is due when the lease ends.
--                                 Nothing wakes it; the worker that releases it checks for new deliveries
--   parked  due_at is ahead       it backs off (backoff_until) after a failure, or its deliveries are not due yet
-- A delivery has no state. It is deleted when it has been delivered, has been abandoned or has become obsolete. Attempts are
-- in mail.delivery_attempts.
create table mail.deliveries (
  endpoint_id bigint not null,
  event_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  attempt integer not null default 0,
  due_at timestamptz not null default postern.now(),
  -- When the delivery is abandoned. A replay restarts the retry period.
  gives_up_at timestamptz not null,
  primary key (shard, endpoint_id, event_id)
);
-- In sending order. A failed delivery is due later than the waiting ones, so it does not block others.
create index on mail.deliveries (shard, endpoint_id, due_at, event_id);
call postern.protect('mail.deliveries');
grant select on mail.deliveries to postern_admin, postern_customer, postern_readonly;
grant select, insert, update, delete on mail.deliveries to postern_mail;

create table mail.endpoint_queues (
  endpoint_id bigint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  due_at timestamptz,
  leased_until timestamptz,
  -- The fencing token: only the holder of this lease can record results.
  lease bigint not null default 0,
  -- The end of the backoff after a failure or a Retry-After header. Nothing wakes the queue earlier. If it is past or null,
  -- a new delivery makes the queue due.
  backoff_until timestamptz,
  -- The number of consecutive failures, and the time of the first.
  failures integer not null default 0,
  failing_since timestamptz,
  last_success_at timestamptz,
  -- When the endpoint's health was last published to the control database. It is published at most once per minute, unless
  -- the endpoint starts or stops failing.
  published_at timestamptz,
  -- An endpoint is healthy if it has not failed since its last success, or was never tried. Failing endpoints use a few
  -- separate slots in each worker.
  is_healthy boolean not null generated always as (failures = 0) stored,
  primary key (shard, endpoint_id)
) with (fillfactor = 50);
create index on mail.endpoint_queues (is_healthy, due_at) where due_at is not null;
call postern.protect('mail.endpoint_queues');
grant select, insert, update, delete on mail.endpoint_queues to postern_mail;
grant select on mail.endpoint_queues to postern_admin, postern_readonly, postern_customer;

-- Wake-ups: a delivery waits for this endpoint. Inserted with each delivery, so transactions that insert deliveries never
-- wait for each other's lock on a queue row. Consumed by a worker.
create table mail.wakes (
  id bigint generated always as identity primary key,
  endpoint_id bigint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored
);
call postern.protect('mail.wakes');
grant select, insert, update, delete on mail.wakes to postern_mail;
grant select on mail.wakes to postern_admin, postern_readonly;

create table mail.delivery_attempts (
  -- UUIDv7 of the start time.
  id uuid not null,
  endpoint_id bigint not null,
  event_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  event_type text not null,
  attempt integer not null,
  -- `delivered`: 2xx. `failed`: to be retried. `given_up`: expired. `gone`: 410, which disables the endpoint.
  outcome text not null check (outcome in ('delivered', 'failed', 'given_up', 'gone')),
  -- The HTTP status. Null without a response; `error` then contains the reason.
  status smallint,
  latency_ms integer not null check (latency_ms >= 0),
  response text,
  error text,
  primary key (shard, id)
) partition by range (id);
create index on mail.delivery_attempts (shard, endpoint_id, id);
create index on mail.delivery_attempts (shard, endpoint_id, event_id);
call postern.protect('mail.delivery_attempts');
grant select, insert, update, delete on mail.delivery_attempts to postern_mail;
grant select on mail.delivery_attempts to postern_admin, postern_readonly, postern_customer;

-- Replays: time ranges of events that are delivered again, in steps. One per endpoint.
create table mail.replays (
  endpoint_id bigint not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  from_id uuid not null,
  to_id uuid not null,
  -- Events up to this id have been read.
  cursor uuid,
  -- Whether events that have already been delivered are skipped.
  only_undelivered boolean not null,
  due_at timestamptz not null default postern.now(),
  created_at timestamptz not null default postern.now(),
  primary key (shard, endpoint_id)
);
create index on mail.replays (due_at);
call postern.protect('mail.replays');
grant select, insert, update, delete on mail.replays to postern_mail;
grant select on mail.replays to postern_admin, postern_readonly, postern_customer;

-- Inbound mail.

-- Inbound mail: one row per accepted recipient. If the message is delivered to an endpoint, its content is stored once for
-- all recipients. The result is written in the same transaction: an event for an endpoint, or an outgoing message. A dropped
-- message leaves only its row. Rows are never updated.
create table mail.inbound (
  id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  domain_id bigint not null,
  route_id bigint not null,
  action text not null check (action in ('endpoint', 'forward', 'drop')),
  endpoint_id bigint,
  -- For `forward`: the outgoing message.
  message_id uuid,
  -- Why mail for a forwarding route was accepted but not forwarded. Null if there is an outgoing message.
  not_forwarded text check (not_forwarded in ('dmarc')),
  -- Empty: the null sender.
  envelope_from text not null,
  recipient text not null,
  from_header text not null,
  subject text not null,
  size_bytes integer not null check (size_bytes >= 0),
  authentication jsonb not null,
  remote_address inet not null,
  -- The stored message, if it is retained.
  body_id uuid,
  created_at timestamptz not null default postern.now(),
  primary key (shard, id),
  check ((action = 'endpoint') = (endpoint_id is not null)),
  check ((action = 'endpoint') = (body_id is not null)),
  check ((action = 'forward') = (message_id is not null or not_forwarded is not null)),
  check (message_id is null or not_forwarded is null)
) partition by range (id);
create index on mail.inbound (shard, project_id, id);
call postern.protect('mail.inbound');
grant select, insert, update, delete on mail.inbound to postern_mail;
grant select on mail.inbound to postern_admin, postern_customer, postern_readonly;

create table mail.inbound_bodies (
  id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  content bytea compression lz4 not null,
  -- JSON (UTF-8): the data of `inbound.received` that is shared by all of the message's events. Null if the events contain
  -- all data.
  event_data bytea compression lz4,
  primary key (shard, id)
) partition by range (id);
call postern.protect('mail.inbound_bodies');
grant select, insert, update, delete on mail.inbound_bodies to postern_mail;
grant select on mail.inbound_bodies to postern_admin;
-- For the payloads of delivery attempts.
grant select (id, project_id, shard, event_data) on mail.inbound_bodies to postern_customer;

-- Suppressions and counters.

create table mail.suppressions (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  address text not null check (address = lower(address)),
  reason text not null check (reason in ('bounce', 'complaint', 'manual')),
  -- The message that caused the suppression.
  message_id uuid,
  created_at timestamptz not null default postern.now(),
  primary key (shard, project_id, address)
);
-- A project's manual suppressions, counted against its cap.
create index on mail.suppressions (shard, project_id) where reason = 'manual';
call postern.protect('mail.suppressions');
grant select, insert, update, delete on mail.suppressions to postern_mail;
grant select on mail.suppressions to postern_admin, postern_customer, postern_readonly;

-- The number of messages accepted in a UTC day or calendar month. A quota check locks the row.
create table mail.usage (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  period text not null check (period in ('day', 'month')),
  starts_on date not null,
  accepted bigint not null default 0 check (accepted >= 0),
  -- Bytes stored in the period, by outgoing and by inbound mail.
  stored_bytes bigint not null default 0 check (stored_bytes >= 0),
  inbound_bytes bigint not null default 0 check (inbound_bytes >= 0),
  -- The number of messages forwarded in the period. They are included in the number of accepted messages.
  forwarded bigint not null default 0 check (forwarded >= 0),
  primary key (shard, project_id, period, starts_on)
) with (fillfactor = 50);
call postern.protect('mail.usage');
grant select, insert, update, delete on mail.usage to postern_mail;
grant select on mail.usage to postern_admin, postern_customer, postern_readonly;

-- Outcomes by the UTC day on which they occurred. Never dropped, because a project's lifetime totals are the sums of these
-- rows.
create table mail.daily_counters (
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
  -- Of `failed`: ended by the operator, by a discard or because it could not be sent for too long. Does not lower the score.
  failed_by_operator bigint not null default 0,
  primary key (shard, project_id, day)
) with (fillfactor = 50);
call postern.protect('mail.daily_counters');
grant select, insert, update, delete on mail.daily_counters to postern_mail;
grant select on mail.daily_counters to postern_admin, postern_customer, postern_readonly;

-- Outcomes by the five minutes in which they were recorded, for policies, charts and backtests. Retained for 90 days. The
-- columns `excluded_…` count what policies do not use: mail that the operator ended, recipients of test messages, and mail that
-- was accepted before the project's last pace, hold or lock ended.
create table mail.sending_counters (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  -- The start of the five minutes.
  bucket_at timestamptz not null,
  sent integer not null default 0,
  delivered integer not null default 0,
  deferred integer not null default 0,
  bounced integer not null default 0,
  failed integer not null default 0,
  complained integer not null default 0,
  suppressed integer not null default 0,
  -- Of `bounced` and `failed`: those that were never sent, because the MTA rejected them or all attempts failed.
  rejected integer not null default 0,
  excluded_sent integer not null default 0,
  excluded_delivered integer not null default 0,
  excluded_deferred integer not null default 0,
  excluded_bounced integer not null default 0,
  excluded_failed integer not null default 0,
  excluded_complained integer not null default 0,
  excluded_suppressed integer not null default 0,
  excluded_rejected integer not null default 0,
  primary key (shard, project_id, bucket_at)
) partition by range (bucket_at);
-- Rows are inserted in the order of time, so a block range index finds the projects of a bucket.
create index on mail.sending_counters using brin (bucket_at) with (pages_per_range = 16, autosummarize = on);
call postern.protect('mail.sending_counters');
grant select, insert, update, delete on mail.sending_counters to postern_mail;
grant select on mail.sending_counters to postern_admin, postern_customer, postern_readonly;

-- The sums of mail.sending_counters over all projects, including what policies do not use, for the overview. A worker inserts
-- the row of a bucket once, when no transaction can count in the bucket any more (core/mail/counters/totals.ts). Retained for
-- 90 days.
create table mail.sending_totals (
  -- The start of the five minutes.
  bucket_at timestamptz primary key,
  sent bigint not null,
  delivered bigint not null,
  deferred bigint not null,
  bounced bigint not null,
  failed bigint not null,
  complained bigint not null,
  suppressed bigint not null,
  rejected bigint not null
);
grant select, insert, delete on mail.sending_totals to postern_mail;
grant select on mail.sending_totals to postern_admin, postern_readonly;

-- Outcomes by the hour in which they occurred and by mailbox provider: the operator of the recipient's mailbox, derived from
-- the domain of the address (core/mail/mailbox-providers). A worker counts the events after their commit; the transactions
-- that write events do not touch these tables. The columns are those of mail.sending_counters, without `suppressed`. Retained
-- for 90 days.
create table mail.mailbox_provider_counters (
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  -- The start of the hour.
  hour_at timestamptz not null,
  mailbox_provider text not null,
  sent integer not null default 0,
  delivered integer not null default 0,
  deferred integer not null default 0,
  bounced integer not null default 0,
  failed integer not null default 0,
  complained integer not null default 0,
  rejected integer not null default 0,
  primary key (shard, project_id, hour_at, mailbox_provider)
) partition by range (hour_at);
call postern.protect('mail.mailbox_provider_counters');
grant select, insert, update, delete on mail.mailbox_provider_counters to postern_mail;
grant select on mail.mailbox_provider_counters to postern_admin, postern_customer, postern_readonly;

-- The sums of mail.mailbox_provider_counters over all projects, for the overview.
create table mail.mailbox_provider_totals (
  hour_at timestamptz not null,
  mailbox_provider text not null,
  sent bigint not null default 0,
  delivered bigint not null default 0,
  deferred bigint not null default 0,
  bounced bigint not null default 0,
  failed bigint not null default 0,
  complained bigint not null default 0,
  rejected bigint not null default 0,
  primary key (hour_at, mailbox_provider)
) with (fillfactor = 50);
grant select, insert, update, delete on mail.mailbox_provider_totals to postern_mail;
grant select on mail.mailbox_provider_totals to postern_admin, postern_readonly;

-- How far the events have been counted. One row, which moves in the statement that adds the counts, so each event is counted
-- once. The times are those in the ids of the events, which are the start times of transactions: an event can be committed
-- after one with a larger id was read. The events before `closing_at` are therefore counted only when none of
-- `closing_transactions` is running any more.
--   closing     closing_at is set       waits for the transactions that were running when it was set, a minute later
--   counting    counting_until moves to closing_at, and the next closing_at is set
--   counted     counted_until moves to counting_until, after the last event in between
create table mail.mailbox_provider_progress (
  is_only boolean primary key default true check (is_only),
  -- Incremented by each change: only the worker that has read the current row can change it.
  version bigint not null default 0,
  counted_until timestamptz not null default '2000-01-01 00:00+00',
  counting_until timestamptz not null default '2000-01-01 00:00+00',
  -- The last event that was counted, in the order of (shard, id), of those between the two times.
  after_shard smallint not null default 0,
  after_id uuid not null default '00000000-0000-0000-0000-000000000000',
  closing_at timestamptz,
  -- Process ids and virtual transaction ids.
  closing_transactions text[] not null default '{}'
) with (fillfactor = 50);
insert into mail.mailbox_provider_progress default values;
grant select, update on mail.mailbox_provider_progress to postern_mail;
grant select (counted_until) on mail.mailbox_provider_progress to postern_admin, postern_customer;
grant select on mail.mailbox_provider_progress to postern_readonly;

-- Idempotent requests and the two outboxes.

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
call postern.protect('mail.idempotency');
grant select, insert, update, delete on mail.idempotency to postern_mail;
grant select on mail.idempotency to postern_admin;

-- Outbox to the control database. Rows are read here, applied there, and then deleted here.
create table mail.outbox (
  id bigint generated always as identity primary key,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  topic text not null,
  payload jsonb not null,
  created_at timestamptz not null default postern.now()
);
call postern.protect('mail.outbox');
grant select, insert, update, delete on mail.outbox to postern_mail;
grant select on mail.outbox to postern_admin, postern_readonly;

-- The rows of control.outbox that this cell has applied.
create table mail.control_applied (
  outbox_id bigint primary key,
  applied_at timestamptz not null default postern.now()
);
-- Purged by age (core/outbox).
create index on mail.control_applied (applied_at);
grant select, insert, update, delete on mail.control_applied to postern_mail;
grant select on mail.control_applied to postern_admin, postern_readonly;

-- Partitions.

-- The tables partitioned by day. For each: whether queued messages keep its partitions from being dropped, for how many
-- days its partitions are retained (of its own, or in addition to the retention of mail), the fill factor of its pages, and
-- whether its key is a time instead of an id. Reports arrive late, and messages can be accepted a month before they are sent.
-- A recipient is updated two or three times, and an update that finds no room on its page has to update every index.
create function mail.partitioned_tables()
returns table (name text, holds_mail boolean, retention_days integer, extra_days integer, fill_percent integer, has_time_key boolean)
language sql immutable set search_path = pg_catalog as $$
  values ('messages', true, null, 45, 100, false), ('recipients', true, null, 45, 70, false),
         ('bodies', true, null, 0, 100, false), ('attempts', true, null, 0, 100, false),
         ('events', false, null, 0, 100, false), ('delivery_attempts', false, null, 0, 100, false),
         ('inbound', false, null, 0, 100, false), ('inbound_bodies', false, null, 0, 100, false),
         ('sending_counters', false, 90, 0, 50, true), ('mailbox_provider_counters', false, 90, 0, 50, true)
$$;
revoke execute on function mail.partitioned_tables from public;

create function mail.partition_bound(day date, has_time_key boolean) returns text
language sql immutable set search_path = pg_catalog
return case when has_time_key then (day::text || ' 00:00:00+00')
            else postern.uuid7_floor(day::timestamp at time zone 'UTC')::text end;
revoke execute on function mail.partition_bound from public;

-- Creates one partition per UTC day ahead of time, and drops those that are past their retention and that no queued message
-- refers to. The mail role cannot create tables, but can call this function. The function creates and drops no other tables.
-- Returns the numbers of created and dropped partitions.
create function mail.maintain_partitions(ahead_days integer, kept_days integer)
returns table (made integer, dropped integer)
language plpgsql security definer set search_path = pg_catalog as $$
declare
  cut record;
  day date;
  today date := (postern.now() at time zone 'UTC')::date;
  part record;
  beginning uuid;
begin
  -- `is not true` also rejects nulls: compared with null, every partition would be dropped.
  if (ahead_days between 1 and 60 and kept_days between 1 and 3660) is not true then
    raise exception 'ahead_days must be between 1 and 60, kept_days between 1 and 3660';
  end if;
  made := 0;
  dropped := 0;
  -- Serialized: two concurrent calls would both find that a partition is missing.
  perform pg_advisory_xact_lock(hashtextextended('mail.maintain_partitions', 0));
  for cut in select * from mail.partitioned_tables() loop
    -- Includes yesterday, in case the clock is set back slightly.
    for day in select generate_series(today - 1, today + ahead_days, interval '1 day')::date loop
      continue when to_regclass(format('mail.%I', cut.name || to_char(day, '_YYYYMMDD'))) is not null;
      execute format(
        'create table mail.%I partition of mail.%I for values from (%L) to (%L) with (fillfactor = %s)',
        cut.name || to_char(day, '_YYYYMMDD'), cut.name,
        mail.partition_bound(day, cut.has_time_key), mail.partition_bound(day + 1, cut.has_time_key), cut.fill_percent);
      made := made + 1;
    end loop;
    for part in
      select child.relname, to_date(right(child.relname, 8), 'YYYYMMDD') as day
      from pg_inherits
      join pg_class child on child.oid = inhrelid
      where inhparent = format('mail.%I', cut.name)::regclass and child.relname ~ '_[0-9]{8}$'
    loop
      continue when part.day >= today - coalesce(cut.retention_days, kept_days) - cut.extra_days;
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
revoke execute on function mail.maintain_partitions from public;
grant execute on function mail.maintain_partitions to postern_mail;

-- One step of deleting the bodies of messages that were handed off or abandoned. Selects the oldest partition of bodies
-- whose day ended more than `kept_hours` ago, scans the messages that are still queued, in key order, and moves their bodies
-- out of the partition: up to `rows_at_most` messages and about `bytes_at_most` per step. `after_*` is the position that the
-- previous step returned; this step continues there. When the scan is complete, the partition is dropped, because
-- mail.dispatch never gets a new row for an old message. Returns no row if there is nothing to do. `dropped` is null if a
-- reader has locked the partition and the drop has to wait.
create function mail.drop_bodies(
  kept_hours integer, rows_at_most integer, bytes_at_most bigint, after_part text, after_shard smallint, after_message uuid)
returns table (part text, moved integer, dropped boolean, last_shard smallint, last_message uuid)
language plpgsql security definer set search_path = pg_catalog as $$
declare
  today date := (postern.now() at time zone 'UTC')::date;
  is_waiting boolean;
  part_day date;
  first_id uuid;
  end_id uuid;
  shards smallint[] := '{}';
  ids uuid[] := '{}';
  dues timestamptz[] := '{}';
  found_ids uuid[];
  found_dues timestamptz[];
  seen integer;
  is_all boolean := true;
  moved_shards smallint[];
  moved_ids uuid[];
  days date[];
  day date;
begin
  -- `is not true` also rejects nulls.
  if (kept_hours between 24 and 87840 and rows_at_most > 0 and bytes_at_most > 0) is not true then
    raise exception 'kept_hours must be between 24 and 87840, and a step must have a positive size';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('mail.maintain_partitions', 0));
  select child.relname, inhparent = 'mail.waiting_bodies'::regclass, to_date(right(child.relname, 8), 'YYYYMMDD')
    into part, is_waiting, part_day
    from pg_inherits
    join pg_class as child on child.oid = inhrelid
   where inhparent in ('mail.bodies'::regclass, 'mail.waiting_bodies'::regclass) and child.relname ~ '_[0-9]{8}$'
     and (to_date(right(child.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC'
           + make_interval(hours => kept_hours) <= postern.now()
   order by 3, 1
   limit 1;
  if not found then return; end if;
  if part is distinct from after_part then
    after_shard := 0;
    after_message := '00000000-0000-0000-0000-000000000000';
  end if;

  if is_waiting then
    execute format(
      'select array_agg(shard), array_agg(message_id), array_agg(due_at)
         from (select bodies.shard, bodies.message_id,
                      (select max(dispatch.due_at) from mail.dispatch as dispatch
                        where dispatch.shard = bodies.shard and dispatch.message_id = bodies.message_id) as due_at
                 from mail.%I as bodies
                where (bodies.shard, bodies.message_id) > ($1, $2)
                order by bodies.shard, bodies.message_id limit $3) as step', part)
      into shards, ids, dues using after_shard, after_message, rows_at_most;
    is_all := coalesce(cardinality(ids), 0) < rows_at_most;
  else
    -- Shard by shard, in the key order of mail.dispatch: a day can have millions of bodies, but few of their messages are
    -- still queued.
    first_id := postern.uuid7_floor(part_day::timestamp at time zone 'UTC');
    end_id := postern.uuid7_floor((part_day + 1)::timestamp at time zone 'UTC');
    for shard_no in after_shard..1023 loop
      if cardinality(ids) >= rows_at_most then
        is_all := false;
        exit;
      end if;
      select array_agg(step.message_id order by step.message_id), array_agg(step.due_at order by step.message_id)
        into found_ids, found_dues
        from (select dispatch.message_id, max(dispatch.due_at) as due_at
                from mail.dispatch as dispatch
               where dispatch.shard = shard_no and dispatch.message_id >= first_id and dispatch.message_id < end_id
                 and (shard_no > after_shard or dispatch.message_id > after_message)
               group by dispatch.message_id
               order by dispatch.message_id limit rows_at_most - cardinality(ids)) as step;
      continue when found_ids is null;
      shards := shards || array_fill(shard_no::smallint, array[cardinality(found_ids)]);
      ids := ids || found_ids;
      dues := dues || found_dues;
    end loop;
    -- A shard that reached the limit can have more rows.
    is_all := is_all and cardinality(ids) < rows_at_most;
  end if;

  -- Queued messages with a body here, up to the limit of bytes. `seen` is the position of the last one.
  execute format(
    'select array_agg(shard) filter (where is_moved), array_agg(id) filter (where is_moved),
            array_agg(greatest((due at time zone ''UTC'')::date, $5)) filter (where is_moved), max(place)
       from (select wanted.*, due is not null and bodies.message_id is not null as is_moved,
                    coalesce(sum(octet_length(bodies.content)) filter (where due is not null)
                               over (order by place rows between unbounded preceding and 1 preceding), 0) as bytes_before
               from unnest($1, $2, $3) with ordinality as wanted (shard, id, due, place)
               left join mail.%I as bodies on bodies.shard = wanted.shard and bodies.message_id = wanted.id) as step
      where bytes_before < $4', part)
    into moved_shards, moved_ids, days, seen using shards, ids, dues, bytes_at_most, today;
  moved := coalesce(cardinality(moved_ids), 0);
  if moved > 0 then
    for day in select distinct unnest(days) loop
      continue when to_regclass(format('mail.%I', 'waiting_bodies_' || to_char(day, 'YYYYMMDD'))) is not null;
      execute format(
        'create table mail.%I partition of mail.waiting_bodies for values from (%L) to (%L)',
        'waiting_bodies_' || to_char(day, 'YYYYMMDD'), day, day + 1);
    end loop;
    execute format(
      'with gone as (
         delete from mail.%I as bodies using unnest($1, $2, $3) as wanted (shard, message_id, until)
          where bodies.shard = wanted.shard and bodies.message_id = wanted.message_id
         returning bodies.message_id, bodies.project_id, bodies.format, bodies.content, wanted.until)
       insert into mail.waiting_bodies (message_id, project_id, format, content, kept_until)
       select * from gone', part)
      using moved_shards, moved_ids, days;
  end if;

  dropped := false;
  if is_all and seen is not distinct from nullif(cardinality(ids), 0) then
    -- Without a timeout, all transactions that accept or claim mail would wait behind this lock while a reader holds the
    -- partition.
    perform set_config('lock_timeout', '200ms', true);
    begin
      execute format('drop table mail.%I', part);
      dropped := true;
    exception when lock_not_available then
      dropped := null;
    end;
  end if;
  last_shard := shards[seen];
  last_message := ids[seen];
  return next;
end
$$;
revoke execute on function mail.drop_bodies from public;
grant execute on function mail.drop_bodies to postern_mail;

-- Allows mail to be accepted before the first worker has run.
select mail.maintain_partitions(14, 3660);
