-- Repeated requests, and what control has to tell mail.

-- Claimed and answered inside the operation's own transaction; kept 24 hours.
create table control.idempotency (
  actor text not null,
  operation text not null,
  key text not null,
  project_id bigint,
  request_hash bytea not null check (length(request_hash) = 32),
  status smallint not null,
  location text,
  etag text,
  -- Null where the answer held a secret: it is never told twice. As text, so that its members keep their order.
  body json,
  created_at timestamptz not null default postern.now(),
  expires_at timestamptz not null,
  unique nulls not distinct (project_id, actor, operation, key)
);
create index on control.idempotency (expires_at);

-- Written in the transaction that makes it true, applied by the mail plane in a transaction of its own,
-- which remembers the id in mail.control_applied: at least once on the way, exactly once in effect.
create table control.outbox (
  id bigint generated always as identity primary key,
  project_id bigint,
  shard smallint generated always as (postern.shard_of(project_id)) stored,
  topic text not null,
  payload jsonb not null,
  created_at timestamptz not null default postern.now()
);

-- The other direction: which rows of mail.outbox control has applied, per cell.
create table control.mail_applied (
  cell text not null,
  outbox_id bigint not null,
  applied_at timestamptz not null default postern.now(),
  primary key (cell, outbox_id)
);

-- Projects whose mail an administrator holds back, besides those that are locked.
create table control.queue_holds (
  project_id bigint primary key references control.projects on delete cascade,
  held_at timestamptz not null default postern.now()
);

call postern.protect('control.queue_holds');
call postern.protect('control.idempotency');
call postern.protect('control.outbox');

grant select, insert, update, delete on control.idempotency to postern_admin;
grant select, insert, update on control.idempotency to postern_customer;
grant select, insert, delete on control.queue_holds to postern_admin;
grant select on control.queue_holds to postern_customer, postern_mail, postern_readonly;
grant select, insert, delete on control.outbox to postern_admin;
grant insert on control.outbox to postern_customer;
grant select on control.outbox to postern_mail;
grant select, insert, delete on control.mail_applied to postern_admin;
grant select on control.outbox, control.mail_applied to postern_readonly;
