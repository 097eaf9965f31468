-- Who changed what, and why. One hash chain per project and one (chain 0) for global objects, gapless by
-- its primary key. Rows outlive what they speak of, so nothing here is a foreign key.

create table control.audit (
  chain bigint not null,
  seq bigint not null check (seq > 0),
  -- Order of insertion over all chains, for lists and exports; gaps mean nothing.
  id bigint generated always as identity unique,
  at timestamptz not null,
  actor_id bigint not null,
  -- Salted SHA-256 of the row in audit_people: proves it while it is there, survives its erasure.
  actor_digest bytea not null,
  request_id text not null,
  operation text not null,
  project_id bigint,
  resource_type text not null,
  -- Text, because a message's is a UUID.
  resource_id text not null,
  reason text,
  before jsonb,
  after jsonb,
  -- Which customer limit an administrator went past: {limit, value, count}.
  limit_exception jsonb,
  prev_hash bytea not null check (length(prev_hash) = 32),
  hash bytea not null check (length(hash) = 32),
  -- The transaction that wrote the row: an export stops below the oldest one still running, so that a
  -- late commit is not missed.
  xid xid8 not null default pg_current_xact_id(),
  primary key (chain, seq),
  check (chain = coalesce(project_id, 0))
);
create index on control.audit (project_id, id) where project_id is not null;
create index on control.audit (actor_id, id);
create index on control.audit (operation, id);
create index on control.audit (resource_type, resource_id, id);
create index on control.audit (at, id);

-- Beside the chain, because a person may ask to be erased from it.
create table control.audit_people (
  audit_id bigint primary key,
  project_id bigint,
  actor_id bigint not null,
  salt bytea not null,
  email text,
  ip inet,
  user_agent text
);
create index on control.audit_people (actor_id);

-- Signed once a minute over the chain heads that moved since the last; itself chained.
create table control.audit_checkpoints (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  heads jsonb not null,
  prev_hash bytea not null check (length(prev_hash) = 32),
  hash bytea not null unique check (length(hash) = 32),
  key_id text not null,
  signature bytea not null
);

-- Refusals of signed-in users: counted per actor, operation and minute, kept 90 days, not chained.
create table control.denials (
  minute timestamptz not null,
  actor_id bigint not null,
  operation text not null,
  error text not null,
  project_id bigint,
  count integer not null default 1,
  last_request_id text not null,
  primary key (minute, actor_id, operation, error)
);

call postern.protect('control.audit');
call postern.protect('control.audit_people');
call postern.protect('control.denials');
call postern.make_append_only('control.audit');
call postern.make_append_only('control.audit_checkpoints');

grant select, insert on control.audit, control.audit_checkpoints to postern_admin;
grant select, insert, delete on control.audit_people to postern_admin;
grant select, insert, update, delete on control.denials to postern_admin;
grant select on control.audit, control.audit_people, control.audit_checkpoints, control.denials to postern_readonly;
