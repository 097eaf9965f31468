-- What customers do, and what happens to a user's account: one hash chain per project and one per user, beside the
-- administrators' audit and never in it. Rows outlive what they speak of, so only the heads are referred to.
-- docs/decisions/0024-activity-chains.md tells why.
--
-- A row is appended by the functions below alone: they lock the end of a chain, and refuse a row that does not follow on
-- it. No role may insert, change or delete one otherwise; what is old is deleted from the beginning of a chain, and the
-- head remembers the last row that went.

create table control.project_activity_heads (
  project_id bigint primary key,
  seq bigint not null default 0,
  hash bytea not null default decode(repeat('00', 32), 'hex') check (length(hash) = 32),
  purged_seq bigint not null default 0,
  purged_hash bytea not null default decode(repeat('00', 32), 'hex') check (length(purged_hash) = 32)
);
-- "Which chains are too long?"
create index project_activity_heads_length on control.project_activity_heads ((seq - purged_seq));

create table control.project_activity (
  project_id bigint not null references control.project_activity_heads,
  seq bigint not null check (seq > 0),
  at timestamptz not null,
  actor_type text collate "C" not null check (actor_type in ('user', 'api_key', 'administrator', 'system', 'unknown')),
  actor_id bigint,
  -- Salted SHA-256 of the part `actor` in project_activity_people.
  actor_digest bytea not null check (length(actor_digest) = 32),
  request_id text not null,
  operation text collate "C" not null,
  resource_type text collate "C" not null,
  -- Null where it would be an address.
  resource_id text,
  -- Without secrets. An address is {"address_digest": …}, and stands in project_activity_people.
  before jsonb,
  after jsonb,
  prev_hash bytea not null check (length(prev_hash) = 32),
  hash bytea not null check (length(hash) = 32),
  primary key (project_id, seq),
  -- An act has one row, however often the mail side's word of it is relayed.
  unique (project_id, request_id)
);
create index on control.project_activity (at);

-- Personal data beside the chain: the actor's, and each address in a change under its path. May be erased.
create table control.project_activity_people (
  project_id bigint not null,
  seq bigint not null,
  part text collate "C" not null,
  salt bytea not null check (length(salt) = 16),
  email text,
  ip text,
  user_agent text,
  primary key (project_id, seq, part)
);
create index on control.project_activity_people (lower(email)) where email is not null;

create table control.user_activity_heads (
  user_id bigint primary key,
  seq bigint not null default 0,
  hash bytea not null default decode(repeat('00', 32), 'hex') check (length(hash) = 32),
  purged_seq bigint not null default 0,
  purged_hash bytea not null default decode(repeat('00', 32), 'hex') check (length(purged_hash) = 32),
  -- Attempts in the hour of the last one: only the first few have a row.
  attempts_hour timestamptz,
  attempts integer not null default 0
);
create index user_activity_heads_length on control.user_activity_heads ((seq - purged_seq));

create table control.user_activity (
  user_id bigint not null references control.user_activity_heads,
  seq bigint not null check (seq > 0),
  at timestamptz not null,
  actor_type text collate "C" not null check (actor_type in ('user', 'api_key', 'administrator', 'system', 'unknown')),
  actor_id bigint,
  actor_digest bytea not null check (length(actor_digest) = 32),
  request_id text not null,
  operation text collate "C" not null,
  resource_type text collate "C" not null,
  resource_id text,
  before jsonb,
  after jsonb,
  prev_hash bytea not null check (length(prev_hash) = 32),
  hash bytea not null check (length(hash) = 32),
  primary key (user_id, seq)
);
create index on control.user_activity (at);

create table control.user_activity_people (
  user_id bigint not null,
  seq bigint not null,
  part text collate "C" not null,
  salt bytea not null check (length(salt) = 16),
  email text,
  ip text,
  user_agent text,
  primary key (user_id, seq, part)
);
create index on control.user_activity_people (lower(email)) where email is not null;

create trigger append_only before update or truncate on control.project_activity
  for each statement execute function postern.refuse_change();
create trigger append_only before update or truncate on control.user_activity
  for each statement execute function postern.refuse_change();

-- A customer's transaction appends to the chain of its own project. One that names no project (0) is of a user who makes
-- or joins one.
create function control.require_activity_of(project bigint) returns void
language plpgsql stable set search_path = pg_catalog as $$
begin
  if coalesce(postern.current_project(), 0) not in (0, project) then
    raise exception 'activity of project % in a transaction of project %', project, postern.current_project()
      using errcode = 'insufficient_privilege';
  end if;
end
$$;

-- The end of a chain, locked until the transaction ends. The time is spelt as it is hashed.
create function control.lock_project_activity(project bigint) returns table (seq bigint, hash text, at text)
language plpgsql security definer set search_path = pg_catalog as $$
#variable_conflict use_column
begin
  perform control.require_activity_of(project);
  insert into control.project_activity_heads (project_id) values (project) on conflict do nothing;
  return query
    select heads.seq, encode(heads.hash, 'hex'), (to_json(postern.now() at time zone 'UTC') #>> '{}') || 'Z'
      from control.project_activity_heads as heads where project_id = project for update;
end
$$;

create function control.append_project_activity(entry jsonb, people jsonb) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
  made control.project_activity := jsonb_populate_record(null::control.project_activity, entry);
begin
  perform control.require_activity_of(made.project_id);
  update control.project_activity_heads as heads set seq = made.seq, hash = made.hash
   where heads.project_id = made.project_id and heads.seq = made.seq - 1 and heads.hash = made.prev_hash;
  if not found then
    raise exception 'row % does not follow on the activity of project %', made.seq, made.project_id;
  end if;
  insert into control.project_activity select made.*;
  -- Beside this row and no other, whatever they say.
  insert into control.project_activity_people (project_id, seq, part, salt, email, ip, user_agent)
    select made.project_id, made.seq, person.part, person.salt, person.email, person.ip, person.user_agent
      from jsonb_populate_recordset(null::control.project_activity_people, people) as person;
end
$$;

create function control.lock_user_activity(of_user bigint) returns table (seq bigint, hash text, at text)
language plpgsql security definer set search_path = pg_catalog as $$
#variable_conflict use_column
begin
  insert into control.user_activity_heads (user_id) values (of_user) on conflict do nothing;
  return query
    select heads.seq, encode(heads.hash, 'hex'), (to_json(postern.now() at time zone 'UTC') #>> '{}') || 'Z'
      from control.user_activity_heads as heads where user_id = of_user for update;
end
$$;

create function control.append_user_activity(entry jsonb, people jsonb) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
  made control.user_activity := jsonb_populate_record(null::control.user_activity, entry);
begin
  update control.user_activity_heads as heads set seq = made.seq, hash = made.hash
   where heads.user_id = made.user_id and heads.seq = made.seq - 1 and heads.hash = made.prev_hash;
  if not found then
    raise exception 'row % does not follow on the activity of user %', made.seq, made.user_id;
  end if;
  insert into control.user_activity select made.*;
  insert into control.user_activity_people (user_id, seq, part, salt, email, ip, user_agent)
    select made.user_id, made.seq, person.part, person.salt, person.email, person.ip, person.user_agent
      from jsonb_populate_recordset(null::control.user_activity_people, people) as person;
end
$$;

-- Whether an attempt at an account is recorded: the first `most` of an hour. `unrecorded`: how many of the last hour that
-- had any were not; the first attempt of the next hour that has any tells it.
create function control.admit_attempt(of_user bigint, most integer)
returns table (is_recorded boolean, unrecorded integer)
language plpgsql security definer set search_path = pg_catalog as $$
declare
  this_hour timestamptz := date_trunc('hour', postern.now(), 'UTC');
  last_hour timestamptz;
  known integer;
begin
  insert into control.user_activity_heads (user_id) values (of_user) on conflict do nothing;
  select heads.attempts_hour, heads.attempts into last_hour, known
    from control.user_activity_heads as heads where heads.user_id = of_user for update;
  if last_hour is distinct from this_hour then
    update control.user_activity_heads as heads set attempts_hour = this_hour, attempts = 1 where heads.user_id = of_user;
    return query select true, greatest(known - most, 0);
  else
    update control.user_activity_heads as heads set attempts = known + 1 where heads.user_id = of_user;
    return query select known < most, 0;
  end if;
end
$$;

-- Deletes up to `at_most` rows from the beginnings of chains of a kind, `project` or `user`: those older than `kept`, and
-- those beyond the newest `most` of a chain. Returns how many. A chain to which somebody appends waits for the next time.
create function control.purge_activity(kind text, kept interval, most bigint, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog as $$
declare
  owner name := case kind when 'project' then 'project_id' when 'user' then 'user_id' end;
  logged text := format('control.%I', kind || '_activity');
  heads text := format('control.%I', kind || '_activity_heads');
  people text := format('control.%I', kind || '_activity_people');
  chain record;
  head record;
  purged integer;
  total integer := 0;
begin
  for chain in execute format(
    'select owner, max(seq) as last from (
       (select %1$I as owner, seq from %2$s where at < postern.now() - $1 order by at limit $3)
       union all
       (select %1$I, seq - $2 from %3$s where seq - purged_seq > $2 order by seq - purged_seq desc limit 100)) as old
     group by owner order by owner', owner, logged, heads) using kept, most, at_most
  loop
    exit when total >= at_most;
    execute format('select purged_seq from %2$s where %1$I = $1 for update skip locked', owner, heads)
      into head using chain.owner;
    continue when head.purged_seq is null;
    execute format(
      'update %3$s set purged_seq = gone.seq, purged_hash = gone.hash
         from (select seq, hash from %2$s where %1$I = $1 and seq <= $2 order by seq desc limit 1) as gone
        where %1$I = $1 returning purged_seq', owner, logged, heads)
      into head using chain.owner, least(chain.last, head.purged_seq + at_most - total);
    execute format('delete from %2$s where %1$I = $1 and seq <= $2', owner, people) using chain.owner, head.purged_seq;
    execute format('delete from %2$s where %1$I = $1 and seq <= $2', owner, logged) using chain.owner, head.purged_seq;
    get diagnostics purged = row_count;
    total := total + purged;
  end loop;
  return total;
end
$$;

call postern.protect('control.project_activity_heads');
call postern.protect('control.project_activity');
call postern.protect('control.project_activity_people');

revoke execute on function control.require_activity_of(bigint), control.lock_project_activity(bigint),
  control.append_project_activity(jsonb, jsonb), control.lock_user_activity(bigint),
  control.append_user_activity(jsonb, jsonb), control.admit_attempt(bigint, integer),
  control.purge_activity(text, interval, bigint, integer) from public;
grant execute on function control.lock_project_activity(bigint), control.append_project_activity(jsonb, jsonb),
  control.lock_user_activity(bigint), control.append_user_activity(jsonb, jsonb)
  to postern_admin, postern_customer, postern_identity;
grant execute on function control.admit_attempt(bigint, integer) to postern_identity;
grant execute on function control.purge_activity(text, interval, bigint, integer) to postern_admin;

grant select on control.project_activity, control.project_activity_people to postern_customer;
grant select on control.user_activity, control.user_activity_people to postern_identity;
grant select on control.project_activity, control.project_activity_heads, control.project_activity_people,
  control.user_activity, control.user_activity_heads, control.user_activity_people to postern_admin;
grant delete on control.project_activity_people, control.user_activity_people to postern_admin;
grant select on control.project_activity, control.project_activity_heads, control.user_activity,
  control.user_activity_heads to postern_readonly;

-- Who made a key: a user, an administrator. Null for keys from before this was kept.
alter table control.api_keys
  add column created_by_type text check (created_by_type in ('user', 'administrator')),
  add column created_by_id bigint;
grant insert (created_by_type, created_by_id), select (created_by_type, created_by_id)
  on control.api_keys to postern_customer;
grant select (created_by_type, created_by_id) on control.api_keys to postern_readonly;

-- Beside an audit row there are now addresses, too, each under the path of its field (core/control/audit/addresses.ts).
alter table control.audit_people drop constraint audit_people_part_check;
-- Addresses are kept as they were written; who asks to be erased need not know how.
create index audit_people_lower_email on control.audit_people (lower(email)) where email is not null;

-- What has had its time of sign-ins: sessions that have ended, challenges, used codes and counters of attempts. Up to
-- `at_most` rows of each; returns the most that went of one.
create function control.purge_sign_ins(at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog as $$
declare
  gone integer;
  most integer := 0;
begin
  delete from control.sessions where id = any(array(
    select id from control.sessions where expires_at < postern.now() - interval '1 day' order by expires_at limit at_most));
  get diagnostics gone = row_count;
  most := greatest(most, gone);
  delete from control.verifications where id = any(array(
    select id from control.verifications where expires_at < postern.now() - interval '1 day'
     order by expires_at limit at_most));
  get diagnostics gone = row_count;
  most := greatest(most, gone);
  delete from control.used_totp_codes where ctid = any(array(
    select ctid from control.used_totp_codes where used_at < postern.now() - interval '1 day'
     order by used_at limit at_most));
  get diagnostics gone = row_count;
  most := greatest(most, gone);
  -- In milliseconds, by the clock of the process that counts.
  delete from control.sign_in_rates where id = any(array(
    select id from control.sign_in_rates
     where last_request < (extract(epoch from postern.now() - interval '1 day') * 1000)::bigint
     order by last_request limit at_most));
  get diagnostics gone = row_count;
  return greatest(most, gone);
end
$$;
create index on control.verifications (expires_at);
create index on control.used_totp_codes (used_at);
create index on control.sign_in_rates (last_request);
revoke execute on function control.purge_sign_ins(integer) from public;
grant execute on function control.purge_sign_ins(integer) to postern_admin;

-- Invitations that nobody has accepted, oldest first.
create index members_invited_at on control.members (invited_at) where user_id is null;
