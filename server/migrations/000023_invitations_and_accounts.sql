-- Invitations that need consent and are counted, guesses of passwords that wait, and passwords that are reset by a link.

-- Counts of a UTC day: invitations and mails about lost passwords. `key` is the SHA-256 of what is counted, which for an
-- address need not be kept in clear. Rows of earlier days are purged (core/control/access/daily-counts.sql.ts).
create table control.daily_counts (
  kind text not null check (kind in (
    'invitations of project', 'invitations of user', 'invitations of address', 'resets of account', 'resets of network')),
  key bytea not null check (octet_length(key) = 32),
  day date not null default (postern.now() at time zone 'UTC')::date,
  count integer not null check (count > 0),
  primary key (kind, key, day)
);
create index on control.daily_counts (day);
grant select, insert, update on control.daily_counts to postern_identity;
grant select, delete on control.daily_counts to postern_admin;

-- One more of today. The row stays locked until the end of the transaction, so that two who count the same thing do so one
-- after the other.
create function control.count_today(counted text, counted_key text) returns integer
language sql security definer set search_path = pg_catalog as $$
  insert into control.daily_counts as counts (kind, key, count)
  values (counted, sha256(convert_to(counted_key, 'UTF8')), 1)
  on conflict (kind, key, day) do update set count = counts.count + 1
  returning count
$$;

-- Counts one invitation: of the project, of the user who invites (null: an administrator, who is not counted), and of the
-- address that is invited. Always in this order, so that two transactions never wait for each other.
create function control.count_invitation(project bigint, inviter bigint, address text)
returns table (of_project integer, of_user integer, of_address integer)
language plpgsql security definer set search_path = pg_catalog as $$
begin
  -- For the customers' role: the transaction's own project alone.
  if postern.current_project() is not null and project is distinct from postern.current_project() then
    raise exception 'an invitation is counted for the project of the transaction' using errcode = 'insufficient_privilege';
  end if;
  of_project := control.count_today('invitations of project', project::text);
  of_user := case when inviter is null then 0 else control.count_today('invitations of user', inviter::text) end;
  of_address := control.count_today('invitations of address', address);
  return next;
end
$$;

-- Pending invitations by the address that they went to: for the person who is invited.
create index members_invited on control.members (email, id) where user_id is null;

-- The customers' role adds nobody who has not consented, and does not find out who has an account.
revoke execute on function control.account_at(text) from postern_customer;
revoke insert (user_id, name, joined_at) on control.members from postern_customer;
grant select (invited_at) on control.members to postern_mail;

-- Accepts an invitation without its token: for the account whose address, proved by mail, is the one that was invited. No
-- row when there is no such invitation for this user; with `is_joined` false, the membership that this user has already.
create function control.join_invited(invitation bigint, joining bigint)
returns table (is_joined boolean, id bigint, project_id bigint, user_id bigint, email text, name text, role text,
               invited_at timestamptz, joined_at timestamptz, version bigint, created_at timestamptz,
               updated_at timestamptz)
language plpgsql security definer set search_path = pg_catalog as $$
#variable_conflict use_column
declare
  project bigint;
begin
  select members.project_id into project
    from control.members as members
    join control.users as users on users.email = members.email
   where members.id = invitation and members.user_id is null
     and members.invited_at > postern.now() - control.invitation_lifetime()
     and users.id = joining and users.is_active and users.email_verified;
  if not found then
    return;
  end if;
  -- As for every change of the members of a project: one after the other.
  perform from control.projects where id = project for no key update;
  return query
    select false, members.id, members.project_id, members.user_id, members.email, members.name, members.role,
           members.invited_at, members.joined_at, members.version, members.created_at, members.updated_at
      from control.members as members
     where members.project_id = project and members.user_id = joining;
  if found then
    return;
  end if;
  return query
    update control.members as members
       set user_id = users.id, name = users.name, joined_at = postern.now(), invitation_hash = null,
           version = members.version + 1, updated_at = postern.now()
      from control.users as users
     where members.id = invitation and members.user_id is null
       and members.invited_at > postern.now() - control.invitation_lifetime()
       and users.id = joining and users.is_active and users.email_verified and users.email = members.email
    returning true, members.id, members.project_id, members.user_id, members.email, members.name, members.role,
              members.invited_at, members.joined_at, members.version, members.created_at, members.updated_at;
end
$$;

revoke execute on function control.count_today(text, text), control.count_invitation(bigint, bigint, text),
  control.join_invited(bigint, bigint) from public;
grant execute on function control.count_today(text, text) to postern_identity;
grant execute on function control.count_invitation(bigint, bigint, text) to postern_admin, postern_customer;
grant execute on function control.join_invited(bigint, bigint) to postern_customer;

-- Wrong passwords, by account. `digest` is an HMAC of the address, or of the address and a browser that has signed in
-- before; addresses without an account have rows, too, so that nobody sees the difference. Those are kept up to a number,
-- and all of them for a day (core/control/access/password-backoff.sql.ts).
create table control.sign_in_failures (
  digest bytea primary key check (octet_length(digest) = 32),
  user_id bigint references control.users on delete cascade,
  failures integer not null check (failures >= 0),
  failed_at timestamptz not null default postern.now()
);
create index on control.sign_in_failures (user_id);
create index on control.sign_in_failures (failed_at);
create index sign_in_failures_unknown on control.sign_in_failures (failed_at) where user_id is null;
grant select, insert, update, delete on control.sign_in_failures to postern_identity;
grant select, delete on control.sign_in_failures to postern_admin;

-- How long the next attempt waits. Ten are free, then the wait doubles from one second to a quarter of an hour.
create function control.sign_in_delay(failures integer) returns interval
language sql immutable
return make_interval(secs => case when failures < 10 then 0 else least(power(2, least(failures - 10, 10)), 900) end);

-- Links by which a person sets a new password. States: asked for (no token_hash; by mail alone) → usable → gone, by use, by
-- the use of another one of the same user, or by age. Those who asked for an address without an account have a row without
-- a user, which the worker deletes; so the request is the same for every address.
create table control.password_resets (
  id bigint generated always as identity primary key,
  user_id bigint references control.users on delete cascade,
  token_hash bytea unique check (octet_length(token_hash) = 32),
  -- When the mail was handed over, or refused for good, or the link was shown at the shell; null: it waits to be mailed.
  mailed_at timestamptz,
  created_at timestamptz not null default postern.now(),
  expires_at timestamptz not null
);
create index on control.password_resets (user_id);
create index on control.password_resets (expires_at);
create index password_resets_to_mail on control.password_resets (id) where mailed_at is null;
grant select, insert, update, delete on control.password_resets to postern_identity;
grant select (id, user_id, mailed_at, created_at, expires_at), update (token_hash, mailed_at), delete
  on control.password_resets to postern_admin;
