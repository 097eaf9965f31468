-- Two steps that used to happen inside transactions shared by tenants, and now happen after them.

-- The result of an attempt, committed together with the end of the attempt. The events, counters and suppressions that
-- follow from it are made later, by the transaction that deletes the row: exactly once, and nothing that goes wrong
-- there can make the mail go out again.
--   (inserted)               the attempt ended, or the mail expired (worker)
--   → (deleted)              published (worker), or taken along by a later report about the recipient (intake)
-- `due_at` is a lease: the worker that wrote the row publishes it within moments, and after `due_at` any worker does. It has no
-- index: rows are few and short-lived, and every mail would pay for the index.
create table mail.attempt_results (
  message_id uuid not null,
  recipient_no smallint not null,
  attempt integer not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  type text not null check (type in ('sent', 'deferred', 'bounced', 'failed')),
  -- Of a test key: `sent` is followed by `delivered`, and neither is counted.
  is_test boolean not null,
  recipient text not null,
  -- RFC 3463, if the MTA gave one.
  status text,
  diagnostic text,
  due_at timestamptz not null default postern.now() + interval '10 seconds',
  primary key (shard, message_id, recipient_no, attempt, type)
);

-- An event that has not been handed to all endpoints of its project yet. A worker inserts the deliveries, a bounded
-- number in each transaction, and deletes the row when no endpoint is left.
create table mail.fan_outs (
  event_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  type text not null,
  -- An endpoint that receives the event although it does not subscribe to its type.
  endpoint_id bigint,
  -- Endpoints up to this id have their delivery.
  after_endpoint_id bigint not null default 0,
  primary key (shard, project_id, event_id)
);

call postern.protect('mail.attempt_results');
call postern.protect('mail.fan_outs');

grant select, insert, update, delete on mail.attempt_results, mail.fan_outs to postern_mail;
grant select on mail.attempt_results, mail.fan_outs to postern_admin, postern_readonly;
