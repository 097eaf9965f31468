-- The control schema: people, projects and their resources, audit. Small, global, read everywhere.

-- People and sign-in. Better Auth owns sessions, accounts, two_factors, verifications, signing_keys and sign_in_rates (mapped
-- in core/control/access/better-auth.ts). Only postern_identity can read them.

create table control.users (
  id bigint generated always as identity primary key,
  email text not null unique check (email = lower(email)),
  name text not null,
  email_verified boolean not null default false,
  image text,
  two_factor_enabled boolean not null default false,
  role text not null default 'user' check (role in ('user', 'admin')),
  -- What an administrator can do. 'full' for everyone else.
  rights text not null default 'full' check (rights in ('full', 'support', 'billing', 'auditor')),
  is_active boolean not null default true,
  -- Access tokens contain the generation in which they were issued. Incrementing it revokes all of the user's tokens.
  token_generation integer not null default 1,
  token_generation_at timestamptz not null default postern.now(),
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
-- For user list filters that match few rows.
create index users_administrators on control.users (id) where role = 'admin';
create index users_inactive on control.users (id) where not is_active;
create index users_by_email on control.users ((email collate "C"), id);
create index users_by_name on control.users ((lower(name) collate "C"), id);
call postern.make_searchable('control.users', 'email', 'lower(name)');
-- The sign-in library's role cannot grant the admin role or rights, or enable a disabled user: it cannot write `role`,
-- `rights`, `is_active` and `token_generation`.
grant select, update (email, name, email_verified, image, two_factor_enabled, updated_at)
  on control.users to postern_identity;
grant select, insert, update on control.users to postern_admin;
grant select (id, email, email_verified, name, is_active) on control.users to postern_mail;
grant select on control.users to postern_readonly;

-- A user of an external OpenID Connect issuer. Identified by (iss, sub), because an email address can pass to another
-- person.
create table control.external_logins (
  id bigint generated always as identity unique,
  issuer text not null,
  subject text not null,
  user_id bigint not null references control.users on delete cascade,
  created_at timestamptz not null default postern.now(),
  primary key (issuer, subject)
);
create index on control.external_logins (user_id);
grant select, insert, delete on control.external_logins to postern_identity;
grant select, insert, delete on control.external_logins to postern_admin;

create table control.sessions (
  id bigint generated always as identity primary key,
  user_id bigint not null references control.users on delete cascade,
  token text not null unique,
  -- When the second factor was verified for this session, or null if only the password was verified.
  second_factor_at timestamptz,
  -- When an external issuer authenticated the user for this session, or null if it did not, or did not say when.
  external_auth_at timestamptz,
  ip_address text,
  user_agent text,
  expires_at timestamptz not null,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
create index on control.sessions (user_id);
create index on control.sessions (expires_at);
grant select, insert, update, delete on control.sessions to postern_identity;
-- Administrators can revoke sessions but cannot read session tokens.
grant delete, select (id, user_id, expires_at, created_at) on control.sessions to postern_admin;

-- Using a session renews it, up to a week after sign-in.
create function control.limit_session() returns trigger
language plpgsql as $$
begin
  new.expires_at := least(new.expires_at, new.created_at + interval '7 days');
  return new;
end
$$;

create trigger limit_session before insert or update on control.sessions
  for each row execute function control.limit_session();

create table control.accounts (
  id bigint generated always as identity primary key,
  user_id bigint not null references control.users on delete cascade,
  account_id text not null,
  provider_id text not null,
  password text,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamptz,
  refresh_token_expires_at timestamptz,
  scope text,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (provider_id, account_id)
);
create index on control.accounts (user_id);
grant select, insert, update, delete on control.accounts to postern_identity;

create table control.two_factors (
  id bigint generated always as identity primary key,
  user_id bigint not null unique references control.users on delete cascade,
  secret text not null,
  backup_codes text not null,
  verified boolean not null default true,
  failed_verification_count integer not null default 0,
  locked_until timestamptz,
  -- The encrypted secret of an authenticator that replaces this one when its first code is entered.
  next_secret text,
  next_secret_at timestamptz,
  check ((next_secret is null) = (next_secret_at is null))
);
grant select, insert, update, delete on control.two_factors to postern_identity;

-- Public keys (WebAuthn). The private keys are on the users' devices.
create table control.passkeys (
  id bigint generated always as identity primary key,
  user_id bigint not null references control.users on delete cascade,
  name text not null,
  credential_id text not null unique,
  public_key text not null,
  -- The authenticator's signature counter.
  counter bigint not null,
  device_type text not null,
  backed_up boolean not null,
  transports text,
  aaguid text,
  created_at timestamptz not null default postern.now()
);
create index on control.passkeys (user_id);
grant select, insert, update, delete on control.passkeys to postern_identity;

-- RFC 6238 §5.2: a code can be used only once within the 90 seconds in which it is valid.
create table control.used_totp_codes (
  user_id bigint not null references control.users on delete cascade,
  code_hash bytea not null,
  used_at timestamptz not null default postern.now(),
  primary key (user_id, code_hash)
);
create index on control.used_totp_codes (used_at);
grant select, insert, update, delete on control.used_totp_codes to postern_identity;

create table control.verifications (
  id bigint generated always as identity primary key,
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
create index on control.verifications (identifier);
create index on control.verifications (expires_at);
grant select, insert, update, delete on control.verifications to postern_identity;

-- The keys that sign access tokens (a JWKS). Private keys are encrypted.
create table control.signing_keys (
  id bigint generated always as identity primary key,
  public_key text not null,
  private_key text not null,
  alg text,
  crv text,
  created_at timestamptz not null default postern.now(),
  expires_at timestamptz
);
grant select, insert, update, delete on control.signing_keys to postern_identity;

create table control.sign_in_rates (
  id bigint generated always as identity primary key,
  key text not null unique,
  count integer not null,
  last_request bigint not null
);
create index on control.sign_in_rates (last_request);
grant select, insert, update, delete on control.sign_in_rates to postern_identity;

-- The number of wrong passwords per account. `digest` is an HMAC of the address, or of the address and a browser that has
-- signed in before. Addresses without an account have rows as well, up to a limit, so a caller cannot tell the difference.
-- Rows are kept for a day (core/control/access/password-backoff.sql.ts).
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

-- The delay before the next attempt. Ten attempts are free, then the delay doubles from 1 second to 15 minutes.
create function control.sign_in_delay(failures integer) returns interval
language sql immutable
return make_interval(secs => case when failures < 10 then 0 else least(power(2, least(failures - 10, 10)), 900) end);

-- System mail: the installation's own mail to people. A row is inserted in the transaction of its cause. It contains no text,
-- address or token: a worker composes the mail from the row's subject when it sends the mail
-- (core/control/notifications, docs/decisions/0034-own-queue-for-system-mail.md).
--   waiting (outcome null) → sent       an MTA accepted the mail
--   waiting → rejected                  an MTA permanently rejected the mail
--   waiting → expired                   no MTA accepted the mail until `expires_at`
--   waiting → obsolete                  there is nothing to tell any more, for example because the invitation was withdrawn
--   sent → bounced                      a report says that the mail was not delivered
-- Finished rows are deleted after 30 days.
create table control.system_mails (
  -- Also in the mail's Message-ID, envelope id and return path. Another id means another mail.
  id uuid primary key default gen_random_uuid(),
  kind text not null check (kind in (
    'invitation', 'password_reset', 'sign_up', 'email_change', 'email_changed', 'account_changed', 'forward_confirmation',
    'endpoint_disabled', 'domain_failing', 'intervention')),
  -- The id of the member, password reset, sign-up, change of an address, change of an account, forward confirmation, endpoint,
  -- domain or intervention.
  subject_id bigint not null,
  -- Null for mail about an account.
  project_id bigint,
  created_at timestamptz not null default postern.now(),
  expires_at timestamptz not null,
  due_at timestamptz not null default postern.now(),
  attempts integer not null default 0,
  leased_until timestamptz,
  -- Fencing token: incremented by every lease.
  lease_no integer not null default 0,
  outcome text check (outcome in ('sent', 'rejected', 'expired', 'obsolete', 'bounced')),
  finished_at timestamptz,
  -- The enhanced status code (RFC 3463) of the last failure.
  status text check (length(status) <= 20),
  check ((outcome is null) = (finished_at is null))
);
create unique index system_mails_waiting on control.system_mails (kind, subject_id) where outcome is null;
create index system_mails_due on control.system_mails (due_at) where outcome is null;
create index system_mails_expiring on control.system_mails (expires_at) where outcome is null;
create index system_mails_created on control.system_mails (created_at) where outcome is null;
create index on control.system_mails (finished_at) where outcome is not null;
call postern.protect('control.system_mails');
grant select, update, delete on control.system_mails to postern_admin;
grant select on control.system_mails to postern_readonly;

-- The only way to add a mail. Returns its id. A waiting mail about the same subject is replaced by one with another id, so a worker that is
-- sending the old one does not finish the new one.
create function control.add_system_mail(mail_kind text, subject bigint, project bigint, until timestamptz) returns uuid
language sql security definer set search_path = pg_catalog as $$
  insert into control.system_mails as mails (kind, subject_id, project_id, expires_at)
  values (mail_kind, subject, project, until)
  on conflict (kind, subject_id) where outcome is null do update
    set id = excluded.id, created_at = excluded.created_at, expires_at = excluded.expires_at, due_at = excluded.due_at,
        attempts = 0, leased_until = null, status = null
  returning id
$$;
revoke execute on function control.add_system_mail(text, bigint, bigint, timestamptz) from public;
grant execute on function control.add_system_mail(text, bigint, bigint, timestamptz) to postern_admin, postern_identity;

-- Password reset links.
--   requested (token_hash null) → usable    the worker emails the link, or an operator issued it
--   usable → (deleted)                      used, invalidated because another of the user's links was used, or expired
-- A request for an address without an account inserts a row without a user, and the worker deletes that row. Every address
-- therefore gets the same response.
create table control.password_resets (
  id bigint generated always as identity primary key,
  user_id bigint references control.users on delete cascade,
  token_hash bytea unique check (octet_length(token_hash) = 32),
  created_at timestamptz not null default postern.now(),
  expires_at timestamptz not null
);
create index on control.password_resets (user_id);
create index on control.password_resets (expires_at);
create index password_resets_requested on control.password_resets (id) where token_hash is null;
grant select, insert, update, delete on control.password_resets to postern_identity;
grant select (id, user_id, created_at, expires_at), update (token_hash), delete on control.password_resets to postern_admin;

-- Sign-ups whose address is not confirmed.
--   requested (token_hash null) → usable    the worker emails the link
--   usable → (deleted)                      confirmed, invalidated because another link to the address was used, or expired
-- A sign-up for an address with an account has its user and no password. The worker emails that the account exists, and there
-- is no token. Every address therefore gets the same response.
create table control.sign_ups (
  id bigint generated always as identity primary key,
  email text not null check (email = lower(email)),
  name text not null,
  user_id bigint references control.users on delete cascade,
  password_hash text,
  token_hash bytea unique check (octet_length(token_hash) = 32),
  mailed_at timestamptz,
  created_at timestamptz not null default postern.now(),
  expires_at timestamptz not null,
  check ((user_id is null) = (password_hash is not null))
);
create index on control.sign_ups (email);
create index on control.sign_ups (user_id);
create index on control.sign_ups (expires_at);
create index sign_ups_requested on control.sign_ups (id) where mailed_at is null;
grant select, insert, delete on control.sign_ups to postern_identity;
grant select (id, email, user_id, created_at, expires_at), update (token_hash, mailed_at), delete
  on control.sign_ups to postern_admin;

-- Creates the account of a confirmed sign-up, without its password, and deletes the sign-up. Returns no row if the token is
-- invalid, used or expired, and null if the address has an account.
create function control.create_signed_up_user(hash bytea) returns setof bigint
language plpgsql security definer set search_path = pg_catalog as $$
declare
  confirmed record;
  made bigint;
begin
  delete from control.sign_ups where token_hash = hash and expires_at > postern.now()
    returning email, name into confirmed;
  if not found then
    return;
  end if;
  insert into control.users (email, name, email_verified) values (confirmed.email, confirmed.name, true)
    on conflict (email) do nothing returning id into made;
  return next made;
end
$$;
revoke execute on function control.create_signed_up_user(bytea) from public;
grant execute on function control.create_signed_up_user(bytea) to postern_identity;

-- Sign-ins at an external issuer that a browser has started.
--   started → (deleted)   the browser came back, started another one, or did not come back within ten minutes
-- A row belongs to one browser, whose cookie it contains as a digest, and is used once. With a session, the browser's user
-- links the external login to their account.
create table control.external_sign_ins (
  state_hash bytea primary key check (octet_length(state_hash) = 32),
  browser_hash bytea not null unique check (octet_length(browser_hash) = 32),
  -- The id of the issuer in the settings.
  issuer_id text not null,
  nonce text not null,
  code_verifier text not null,
  return_to text not null check (length(return_to) <= 200),
  session_id bigint references control.sessions on delete cascade,
  network text not null,
  expires_at timestamptz not null
);
create index on control.external_sign_ins (session_id);
create index on control.external_sign_ins (network);
create index on control.external_sign_ins (expires_at);
grant select, insert, delete on control.external_sign_ins to postern_identity;

-- Creates the account of a person whom an external issuer identified, without a password. Returns null if the address has an
-- account.
create function control.create_external_user(login_issuer text, login_subject text, address text, shown_name text)
  returns bigint
language plpgsql security definer set search_path = pg_catalog as $$
declare
  made bigint;
begin
  insert into control.users (email, name, email_verified) values (address, shown_name, true)
    on conflict (email) do nothing returning id into made;
  if made is not null then
    insert into control.external_logins (issuer, subject, user_id) values (login_issuer, login_subject, made);
  end if;
  return made;
end
$$;
revoke execute on function control.create_external_user(text, text, text, text) from public;
grant execute on function control.create_external_user(text, text, text, text) to postern_identity;

-- Changes of an account's address.
--   requested (token_hash null) → usable   the worker emails a link to the new address
--   usable → confirmed (confirmed_at)      the address is changed, and the worker emails a link to undo that to the old address
--   confirmed → (deleted)                  undone, or expired
--   requested, usable → (deleted)          replaced by another request, or expired
create table control.email_changes (
  id bigint generated always as identity primary key,
  user_id bigint not null references control.users on delete cascade,
  old_email text not null check (old_email = lower(old_email)),
  new_email text not null check (new_email = lower(new_email)),
  token_hash bytea unique check (octet_length(token_hash) = 32),
  undo_hash bytea unique check (octet_length(undo_hash) = 32),
  confirmed_at timestamptz,
  created_at timestamptz not null default postern.now(),
  -- A day after the request, and a week after the confirmation.
  expires_at timestamptz not null
);
create index on control.email_changes (user_id);
create index on control.email_changes (expires_at);
grant select, insert, delete on control.email_changes to postern_identity;
grant select (id, user_id, old_email, new_email, confirmed_at, created_at, expires_at),
      update (token_hash, undo_hash), delete
  on control.email_changes to postern_admin;

-- Changes to the ways in which users sign in that are mailed to them. Kept as long as the mail (core/control/access/account-changes.ts).
create table control.account_changes (
  id bigint generated always as identity primary key,
  user_id bigint not null references control.users on delete cascade,
  operation text not null check (length(operation) <= 100),
  -- Further changes are not mailed for now.
  is_last boolean not null,
  created_at timestamptz not null default postern.now()
);
create index on control.account_changes (user_id, created_at);
create index on control.account_changes (created_at);
grant select, delete on control.account_changes to postern_admin;

-- The only way to add a change: with its mail, and at most `at_most` in any hour. The caller has locked the head of the user's activity,
-- so that changes of one user are counted one after another.
create function control.add_account_change(of_user bigint, changed text, at_most integer, kept interval) returns void
language sql security definer set search_path = pg_catalog as $$
  with known as (
    select count(*)::integer as count from control.account_changes
     where user_id = of_user and created_at > postern.now() - interval '1 hour'
  ), added as (
    insert into control.account_changes (user_id, operation, is_last)
    select of_user, changed, known.count = at_most - 1 from known where known.count < at_most
    returning id, created_at
  )
  select control.add_system_mail('account_changed', id, null, created_at + kept) from added
$$;
revoke execute on function control.add_account_change(bigint, text, integer, interval) from public;
grant execute on function control.add_account_change(bigint, text, integer, interval) to postern_admin, postern_identity;

-- Counters per UTC day: invitations, password reset messages, sign-ups, changes of addresses and mails about interventions. `key` is the SHA-256 of the
-- counted object, so no address is stored in plain text. Rows from earlier days are purged
-- (core/control/access/daily-counts.sql.ts).
create table control.daily_counts (
  kind text not null check (kind in (
    'invitations of project', 'invitations of user', 'invitations of address', 'resets of account', 'resets of network',
    'sign-ups', 'sign-ups of network', 'sign-ups of address', 'email changes of user', 'email changes of address',
    'intervention mails of project')),
  key bytea not null check (octet_length(key) = 32),
  day date not null default (postern.now() at time zone 'UTC')::date,
  count integer not null check (count > 0),
  primary key (kind, key, day)
);
create index on control.daily_counts (day);
grant select, insert, update on control.daily_counts to postern_identity;
grant select, delete on control.daily_counts to postern_admin;

-- Increments one of the current day's counters. The row stays locked until the transaction ends, so concurrent counts are
-- serialized.
create function control.count_today(counted text, counted_key text) returns integer
language sql security definer set search_path = pg_catalog as $$
  insert into control.daily_counts as counts (kind, key, count)
  values (counted, sha256(convert_to(counted_key, 'UTF8')), 1)
  on conflict (kind, key, day) do update set count = counts.count + 1
  returning count
$$;
revoke execute on function control.count_today(text, text) from public;
grant execute on function control.count_today(text, text) to postern_identity, postern_admin;

-- Purges expired sessions, sign-ins at external issuers, challenges, used codes and attempt counters, up to `at_most` rows of each. Returns the largest
-- number of rows deleted from one table.
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
  delete from control.external_sign_ins where state_hash = any(array(
    select state_hash from control.external_sign_ins where expires_at < postern.now() order by expires_at limit at_most));
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
  -- In milliseconds, from the counting process's clock.
  delete from control.sign_in_rates where id = any(array(
    select id from control.sign_in_rates
     where last_request < (extract(epoch from postern.now() - interval '1 day') * 1000)::bigint
     order by last_request limit at_most));
  get diagnostics gone = row_count;
  return greatest(most, gone);
end
$$;
revoke execute on function control.purge_sign_ins(integer) from public;
grant execute on function control.purge_sign_ins(integer) to postern_admin;

-- Plans, projects and members. The current plan's limits apply: admin_plan_id if set, otherwise plan_id.

create table control.plans (
  id bigint generated always as identity primary key,
  name text not null,
  description text not null,
  support_level text not null check (support_level in ('community', 'email', 'priority')),
  max_domains bigint not null check (max_domains >= 0),
  max_users bigint not null check (max_users >= 0),
  max_mails_per_day bigint not null check (max_mails_per_day >= 0),
  max_mails_per_month bigint not null check (max_mails_per_month >= 0),
  billing_product_id text,
  price numeric(12, 2) not null check (price >= 0),
  is_active boolean not null default true,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
grant select, insert, update on control.plans to postern_admin;
grant select on control.plans to postern_customer, postern_mail, postern_readonly;

create domain control.subscription_status as text
  check (value in ('trialing', 'active', 'past_due', 'canceled', 'paused'));

create table control.projects (
  id bigint generated always as identity primary key,
  user_id bigint not null references control.users,
  name text not null,
  is_locked boolean not null default false,
  allow_service_mta boolean not null default false,
  plan_id bigint not null references control.plans,
  admin_plan_id bigint references control.plans,
  billing_subscription_id text,
  billing_subscription_status control.subscription_status,
  billing_product_id text,
  admin_subscription_status control.subscription_status,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
create index on control.projects (user_id);
create index on control.projects (plan_id);
create index on control.projects (admin_plan_id) where admin_plan_id is not null;
call postern.make_searchable('control.projects', 'lower(name)');
call postern.protect('control.projects', 'id');
grant select, insert, update, delete on control.projects to postern_admin;
-- Customers can rename a project directly. To create, delete or join one, they call the functions below.
grant select, update (name, version, updated_at) on control.projects to postern_customer;
grant select on control.projects to postern_mail, postern_readonly;

-- Statistics from the mail database, written only from mail.outbox, so a bounce never changes the project's version.
-- `score_offset` is the exception: it is the administrator's permanent correction, and is stored here so that the displayed
-- score is in one column.
create table control.project_stats (
  project_id bigint primary key references control.projects on delete cascade,
  computed_score smallint not null default 100 check (computed_score between 0 and 100),
  score_offset smallint not null default 0 check (score_offset between -100 and 100),
  reputation_score smallint not null
    generated always as (least(100, greatest(0, computed_score + score_offset))) stored,
  bounced bigint not null default 0,
  failed bigint not null default 0,
  complained bigint not null default 0,
  -- When these totals were read from the mail database, by that database's real clock. Older totals do not replace newer
  -- ones.
  counted_at timestamptz not null default '-infinity',
  -- When to read the totals again even if no new report arrives: rates fall over time and as mail is delivered.
  recount_at timestamptz,
  updated_at timestamptz not null default postern.now()
);
create index on control.project_stats (recount_at) where recount_at is not null;
call postern.protect('control.project_stats');
grant select, insert, update, delete on control.project_stats to postern_admin;
grant select on control.project_stats to postern_customer, postern_mail, postern_readonly;

create table control.members (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  -- Null until the invited person accepts.
  user_id bigint references control.users,
  email text not null check (email = lower(email)),
  name text,
  role text not null check (role in ('owner', 'admin', 'developer', 'viewer')),
  -- SHA-256 of the token in the invitation. Null after the token is used.
  invitation_hash bytea unique,
  invited_by bigint references control.users,
  invited_at timestamptz not null default postern.now(),
  joined_at timestamptz,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, email),
  unique (project_id, user_id),
  check (role <> 'owner' or user_id is not null),
  check ((user_id is null) = (joined_at is null))
);
create unique index members_one_owner on control.members (project_id) where role = 'owner';
create index on control.members (user_id, project_id);
create index on control.members (project_id, id);
-- Pending invitations by address, for the invited person.
create index members_invited on control.members (email, id) where user_id is null;
-- Pending invitations, oldest first.
create index members_invited_at on control.members (invited_at) where user_id is null;
call postern.protect('control.members');
grant select, insert, update, delete on control.members to postern_admin;
grant select (id, project_id, user_id, email, name, role, invited_at, joined_at, version, created_at, updated_at),
      insert (project_id, email, role, invited_by), update (role, version, updated_at), delete
  on control.members to postern_customer;
grant select (id, project_id, user_id, email, name, role, joined_at) on control.members to postern_mail;
grant select (id, project_id, user_id, email, name, role, invited_at, joined_at, version, created_at, updated_at)
  on control.members to postern_readonly;
grant select (invited_at) on control.members to postern_mail;

-- The filter and sort columns of project lists, in one narrow row per project, so one index contains everything that a list
-- reads. It is written only by triggers, in the transaction that changes the source. The counts are compared with the plan's
-- limits when a list is read, so changing a plan's limits writes nothing here. See docs/decisions/0009.
create table control.project_listing (
  project_id bigint not null references control.projects on delete cascade,
  -- In lower case and sorted by code point, independent of the database's collation.
  folded_name text collate "C" not null,
  is_locked boolean not null,
  -- The current plan.
  plan_id bigint not null,
  reputation_score smallint not null,
  member_count integer not null default 0,
  domain_count integer not null default 0,
  primary key (project_id) include (folded_name, is_locked, plan_id, reputation_score, member_count, domain_count)
);
-- One index per sort order (the primary key is the first): for all projects, for a plan's projects, and for the few locked
-- projects.
create index listing_by_name on control.project_listing (folded_name, project_id)
  include (is_locked, plan_id, reputation_score, member_count, domain_count);
create index listing_by_score on control.project_listing (reputation_score, project_id)
  include (folded_name, is_locked, plan_id, member_count, domain_count);
create index listing_of_plan on control.project_listing (plan_id, project_id)
  include (folded_name, is_locked, reputation_score, member_count, domain_count);
create index listing_of_plan_by_name on control.project_listing (plan_id, folded_name, project_id)
  include (is_locked, reputation_score, member_count, domain_count);
create index listing_of_plan_by_score on control.project_listing (plan_id, reputation_score, project_id)
  include (folded_name, is_locked, member_count, domain_count);
create index listing_of_locked on control.project_listing (project_id)
  include (folded_name, plan_id, reputation_score, member_count, domain_count) where is_locked;
create index listing_of_locked_by_name on control.project_listing (folded_name, project_id)
  include (plan_id, reputation_score, member_count, domain_count) where is_locked;
create index listing_of_locked_by_score on control.project_listing (reputation_score, project_id)
  include (folded_name, plan_id, member_count, domain_count) where is_locked;
-- Projects over a limit: one range per plan.
create index listing_by_members on control.project_listing (plan_id, member_count)
  include (project_id, folded_name, is_locked, reputation_score, domain_count);
create index listing_by_domains on control.project_listing (plan_id, domain_count)
  include (project_id, folded_name, is_locked, reputation_score, member_count);
call postern.protect('control.project_listing');
grant select on control.project_listing to postern_admin, postern_readonly;

-- Runs as the owner, because no plane's role can write the listing.
create function control.list_project() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into control.project_listing as listing (project_id, folded_name, is_locked, plan_id, reputation_score)
  values (new.id, lower(new.name), new.is_locked, coalesce(new.admin_plan_id, new.plan_id),
          coalesce((select reputation_score from control.project_stats where project_id = new.id), 100))
  on conflict (project_id) do update
    set folded_name = excluded.folded_name, is_locked = excluded.is_locked, plan_id = excluded.plan_id;
  return null;
end
$$;
revoke execute on function control.list_project() from public;

create trigger list_new after insert on control.projects
  for each row execute function control.list_project();

create trigger list_changed after update on control.projects
  for each row
  when ((old.name, old.is_locked, old.plan_id, old.admin_plan_id)
        is distinct from (new.name, new.is_locked, new.plan_id, new.admin_plan_id))
  execute function control.list_project();

create function control.list_score() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  update control.project_listing set reputation_score = new.reputation_score where project_id = new.project_id;
  return null;
end
$$;
revoke execute on function control.list_score() from public;

create trigger list_new after insert on control.project_stats
  for each row execute function control.list_score();

create trigger list_changed after update on control.project_stats
  for each row when (old.reputation_score <> new.reputation_score) execute function control.list_score();

-- Counts members and domains. The argument is the counter column.
create function control.list_count() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
declare
  project bigint := case tg_op when 'INSERT' then new.project_id else old.project_id end;
  difference integer := case tg_op when 'INSERT' then 1 else -1 end;
begin
  if tg_argv[0] = 'member_count' then
    update control.project_listing set member_count = member_count + difference where project_id = project;
  else
    update control.project_listing set domain_count = domain_count + difference where project_id = project;
  end if;
  return null;
end
$$;
revoke execute on function control.list_count() from public;

create trigger list_count after insert or delete on control.members
  for each row execute function control.list_count('member_count');

-- The key that encrypts a project's secrets, wrapped by a master key.
create table control.project_keys (
  project_id bigint primary key references control.projects on delete cascade,
  master_key_id text not null,
  wrapped_key bytea not null,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
create index on control.project_keys (master_key_id);
call postern.protect('control.project_keys');
grant select, insert, update, delete on control.project_keys to postern_admin;
grant select, insert (project_id, master_key_id, wrapped_key) on control.project_keys to postern_customer;
grant select on control.project_keys to postern_mail;

-- Operations by customers and invited people that need more than one project's rows. Each function does one thing and runs
-- as the owner, so no role needs more privileges.

-- Finds the account of a future member.
create function control.find_account(address text) returns table (user_id bigint, name text)
language sql stable security definer set search_path = pg_catalog as $$
  select users.id, users.name from control.users as users where users.email = address
$$;
revoke execute on function control.find_account(text) from public;
grant execute on function control.find_account(text) to postern_admin;

-- Creates a project with its owner. Returns no row if the plan cannot be assigned. Locks the owner's row, so an owner's
-- projects are created and counted one at a time.
create function control.create_project(owner bigint, project_name text, plan bigint, may_use_service_mta boolean)
  returns setof control.projects
language plpgsql security definer set search_path = pg_catalog as $$
declare
  made control.projects;
begin
  perform from control.plans as plans, control.users as users
    where plans.id = plan and plans.is_active and users.id = owner and users.is_active
    for share of plans for no key update of users;
  if not found then
    return;
  end if;
  insert into control.projects (user_id, name, plan_id, allow_service_mta)
    values (owner, project_name, plan, may_use_service_mta) returning * into made;
  insert into control.project_stats (project_id) values (made.id);
  insert into control.members (project_id, user_id, email, name, role, joined_at)
    select made.id, users.id, users.email, users.name, 'owner', postern.now()
      from control.users as users where users.id = owner;
  return next made;
end
$$;
revoke execute on function control.create_project(bigint, text, bigint, boolean) from public;
grant execute on function control.create_project(bigint, text, bigint, boolean) to postern_customer;

create function control.count_projects(owner bigint) returns integer
language sql stable security definer set search_path = pg_catalog as $$
  select count(*)::integer from control.projects as projects where projects.user_id = owner
$$;
revoke execute on function control.count_projects(bigint) from public;
grant execute on function control.count_projects(bigint) to postern_customer;

-- Sets an account's address, also where the projects' members show it. Returns false if another account has the address. An
-- invitation of the new address to one of the user's projects keeps its address.
create function control.set_email(account bigint, old_email text, new_email text) returns boolean
language plpgsql set search_path = pg_catalog as $$
begin
  update control.users set email = new_email, email_verified = true, version = version + 1, updated_at = postern.now()
   where id = account;
  update control.members as members set email = new_email, version = version + 1, updated_at = postern.now()
   where members.user_id = account and members.email = old_email
     and not exists (select from control.members as others
                      where others.project_id = members.project_id and others.email = new_email);
  return true;
exception when unique_violation then
  return false;
end
$$;
revoke execute on function control.set_email(bigint, text, text) from public;

-- The bearer of the token in the mail to the new address changes the address. Returns no row if the token is invalid, used or
-- expired, or the user is disabled.
create function control.confirm_email_change(hash bytea)
returns table (id bigint, user_id bigint, old_email text, new_email text, expires_at timestamptz, is_taken boolean)
language plpgsql security definer set search_path = pg_catalog as $$
#variable_conflict use_column
declare
  change control.email_changes;
begin
  select changes.* into change
    from control.email_changes as changes join control.users as users on users.id = changes.user_id
   where changes.token_hash = hash and changes.expires_at > postern.now() and changes.confirmed_at is null
     and users.is_active and users.email = changes.old_email
     for update;
  if not found then
    return;
  end if;
  if not control.set_email(change.user_id, change.old_email, change.new_email) then
    return query select change.id, change.user_id, change.old_email, change.new_email, change.expires_at, true;
    return;
  end if;
  return query
    update control.email_changes as changes
       set token_hash = null, confirmed_at = postern.now(), expires_at = postern.now() + interval '7 days'
     where changes.id = change.id
    returning changes.id, changes.user_id, changes.old_email, changes.new_email, changes.expires_at, false;
end
$$;
revoke execute on function control.confirm_email_change(bytea) from public;
grant execute on function control.confirm_email_change(bytea) to postern_identity;

-- The bearer of the token in the mail to the old address restores that address, even if it has been changed again. Returns no
-- row as above. A disabled user's address is restored as well.
create function control.undo_email_change(hash bytea)
returns table (id bigint, user_id bigint, old_email text, new_email text, expires_at timestamptz, is_taken boolean)
language plpgsql security definer set search_path = pg_catalog as $$
#variable_conflict use_column
declare
  change control.email_changes;
  current_email text;
begin
  select changes.* into change from control.email_changes as changes
   where changes.undo_hash = hash and changes.expires_at > postern.now() and changes.confirmed_at is not null
     for update;
  if not found then
    return;
  end if;
  select email into current_email from control.users as users where users.id = change.user_id for update;
  return query
    select change.id, change.user_id, change.old_email, current_email, change.expires_at,
           not control.set_email(change.user_id, current_email, change.old_email);
end
$$;
revoke execute on function control.undo_email_change(bytea) from public;
grant execute on function control.undo_email_change(bytea) to postern_identity;

-- A user's memberships, in order of the projects' ids. Locks the user, so none is added until the transaction ends.
create function control.lock_memberships(account bigint)
returns table (member_id bigint, project_id bigint, project_name text, email text, role text)
language plpgsql security definer set search_path = pg_catalog as $$
#variable_conflict use_column
begin
  perform from control.users as users where users.id = account for update;
  return query
    select members.id, members.project_id, projects.name, members.email, members.role
      from control.members as members join control.projects as projects on projects.id = members.project_id
     where members.user_id = account order by members.project_id;
end
$$;
revoke execute on function control.lock_memberships(bigint) from public;
grant execute on function control.lock_memberships(bigint) to postern_identity;

-- Deletes an account and its memberships. False, without a change, if other rows refer to the user: projects, or what the user
-- did as an administrator.
create function control.delete_account(account bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog as $$
begin
  update control.members set invited_by = null where invited_by = account;
  delete from control.members where user_id = account;
  delete from control.users where id = account and role <> 'admin';
  return found;
exception when foreign_key_violation then
  return false;
end
$$;
revoke execute on function control.delete_account(bigint) from public;
grant execute on function control.delete_account(bigint) to postern_identity;

-- The lifetime of an invitation token.
create function control.invitation_lifetime() returns interval
language sql immutable return interval '14 days';

create function control.mail_invitation() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  perform control.add_system_mail('invitation', new.id, new.project_id, new.invited_at + control.invitation_lifetime());
  return null;
end
$$;
revoke execute on function control.mail_invitation() from public;

create trigger mail_invitation after insert on control.members
  for each row when (new.user_id is null) execute function control.mail_invitation();

-- The bearer of an invitation token becomes the member. Returns no row if the token is invalid, used or expired, and the
-- existing membership with `is_joined` false if the user is already a member.
create function control.accept_invitation_token(token_hash bytea, joining bigint)
returns table (is_joined boolean, id bigint, project_id bigint, user_id bigint, email text, name text, role text,
               invited_at timestamptz, joined_at timestamptz, version bigint, created_at timestamptz,
               updated_at timestamptz)
language plpgsql security definer set search_path = pg_catalog as $$
#variable_conflict use_column
declare
  project bigint := (select project_id from control.members where invitation_hash = token_hash);
begin
  -- Serializes changes to a project's members.
  perform from control.projects where id = project for no key update;
  if not found then
    return;
  end if;
  return query
    select false, members.id, members.project_id, members.user_id, members.email, members.name, members.role,
           members.invited_at, members.joined_at, members.version, members.created_at, members.updated_at
      from control.members as members
     where members.project_id = project and members.user_id = joining
       and exists (select from control.members where invitation_hash = token_hash);
  if found then
    return;
  end if;
  return query
    update control.members as members
       set user_id = users.id, name = users.name, joined_at = postern.now(), invitation_hash = null,
           version = members.version + 1, updated_at = postern.now()
      from control.users as users
     where members.invitation_hash = token_hash and members.user_id is null
       and members.invited_at > postern.now() - control.invitation_lifetime()
       and users.id = joining and users.is_active
    returning true, members.id, members.project_id, members.user_id, members.email, members.name, members.role,
              members.invited_at, members.joined_at, members.version, members.created_at, members.updated_at;
end
$$;
revoke execute on function control.accept_invitation_token(bytea, bigint) from public;
grant execute on function control.accept_invitation_token(bytea, bigint) to postern_customer, postern_identity;

-- Accepts an invitation without its token, for the account with the verified address. Returns no row if the user has no
-- matching invitation, and the existing membership with `is_joined` false if the user is already a member.
create function control.accept_invitation(invitation bigint, joining bigint)
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
  -- Serializes changes to a project's members.
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
revoke execute on function control.accept_invitation(bigint, bigint) from public;
grant execute on function control.accept_invitation(bigint, bigint) to postern_customer;

-- What the bearer of an invitation token is invited to. Returns no row if the token is invalid, used or expired.
create function control.find_invitation(token_hash bytea)
returns table (email text, project_id bigint, project_name text, role text, expires_at timestamptz, has_account boolean)
language sql stable security definer set search_path = pg_catalog as $$
  select members.email, members.project_id, projects.name, members.role,
         members.invited_at + control.invitation_lifetime(),
         exists (select from control.users as users where users.email = members.email)
    from control.members as members
    join control.projects as projects on projects.id = members.project_id
   where members.invitation_hash = token_hash and members.user_id is null
     and members.invited_at > postern.now() - control.invitation_lifetime()
$$;
revoke execute on function control.find_invitation(bytea) from public;
grant execute on function control.find_invitation(bytea) to postern_identity;

-- Creates an account with the invited address. The token proves access to the address's mailbox. Returns no row if the token
-- is invalid, used or expired, and null if the address has an account.
create function control.create_invited_user(token_hash bytea, user_name text) returns setof bigint
language plpgsql security definer set search_path = pg_catalog as $$
declare
  address text;
  made bigint;
begin
  select email into address from control.members
   where invitation_hash = token_hash and user_id is null
     and invited_at > postern.now() - control.invitation_lifetime();
  if not found then
    return;
  end if;
  insert into control.users (email, name, email_verified) values (address, user_name, true)
    on conflict (email) do nothing returning id into made;
  return next made;
end
$$;
revoke execute on function control.create_invited_user(bytea, text) from public;
grant execute on function control.create_invited_user(bytea, text) to postern_identity;

-- Counts one invitation: for the project, for the inviting user (null for an administrator, who is not counted) and for the
-- invited address. Always in this order, to avoid deadlocks.
create function control.count_invitation(project bigint, inviter bigint, address text)
returns table (of_project integer, of_user integer, of_address integer)
language plpgsql security definer set search_path = pg_catalog as $$
begin
  -- The customer role can count only for the transaction's project.
  if postern.current_project() is not null and project is distinct from postern.current_project() then
    raise exception 'an invitation must be counted for the project of the transaction' using errcode = 'insufficient_privilege';
  end if;
  of_project := control.count_today('invitations of project', project::text);
  of_user := case when inviter is null then 0 else control.count_today('invitations of user', inviter::text) end;
  of_address := control.count_today('invitations of address', address);
  return next;
end
$$;
revoke execute on function control.count_invitation(bigint, bigint, text) from public;
grant execute on function control.count_invitation(bigint, bigint, text) to postern_admin, postern_customer;

-- Domains, their identities with a provider, and the DNS records that verify them.
--
-- A domain edit never changes an identity. It registers a replacement and retires the old identity. Mail accepted for the
-- old identity is still signed with it. `unique (project_id, id)` lets other tables reference both columns, so references
-- across projects are impossible.

create domain control.mta_provider as text check (value in ('service', 'ses'));

create table control.domains (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  -- Lower-case A-labels.
  name text not null check (name = lower(name)),
  mta_provider control.mta_provider not null,
  status text not null default 'pending' check (status in ('pending', 'verified', 'failed')),
  -- The value of this project's ownership record. Every edit replaces it.
  ownership_token text not null,
  verified_at timestamptz,
  last_checked_at timestamptz,
  last_check_error text,
  -- Null if no check is scheduled until one is requested.
  next_check_at timestamptz,
  -- The time since which a required record has been missing. For a domain that was never verified, the time of its creation.
  failing_since timestamptz default postern.now(),
  -- Consecutive failed checks.
  checks_failed integer not null default 0,
  -- The number of DKIM rotations on that UTC day. The number is stored because a key that is replaced before its record is
  -- found in DNS leaves no row to count.
  dkim_rotations smallint not null default 0,
  dkim_rotated_on date,
  -- The name under which this domain was last verified. An edit resets the status to pending but does not change this
  -- column, so a project that registers a verified name again keeps receiving its mail.
  verified_name text,
  -- The time since which every check has had a failed DNS lookup for a required record. Null if all lookups in the last
  -- check succeeded.
  unanswered_since timestamptz,
  -- The threshold, in days, of the last warning about failing lookups.
  unanswered_warned_days smallint not null default 0,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id),
  unique (project_id, name)
);
-- Several projects can claim a name, but only one can verify it.
create unique index domains_one_verified_holder on control.domains (name) where status = 'verified';
create index on control.domains (next_check_at) where next_check_at is not null;
create index on control.domains (name);
create index domains_by_name on control.domains ((name collate "C"), id);
call postern.make_searchable('control.domains', 'name');
call postern.protect('control.domains');
-- For API keys bound to a domain: a second policy on a domain's resources, in addition to the project's policy.
-- mail.messages has no such policy: lists of mail read a bounded number of index rows, and rows hidden by a policy would not
-- count toward that bound. For messages, the statements specify the domain (core/mail/messages/messages.sql.ts).
create policy domain on control.domains as restrictive to postern_customer
  using (postern.current_domain() is null or id = postern.current_domain());
grant select, insert, update, delete on control.domains to postern_admin;
-- The columns that a customer's edit can write. Writing them cannot verify a domain, register an identity or activate a key:
-- only the worker can. Only control.reset_verification resets a verification.
grant select, insert (project_id, name, mta_provider, ownership_token),
      update (name, mta_provider, ownership_token, next_check_at, dkim_rotations, dkim_rotated_on, version, updated_at),
      delete
  on control.domains to postern_customer;
grant select on control.domains to postern_mail, postern_readonly;

create trigger list_count after insert or delete on control.domains
  for each row execute function control.list_count('domain_count');

-- Resets a domain to unverified. Runs as the owner, so the customer role needs no privilege on the status columns. A
-- customer's transaction can reset only its own project's domains or, if its API key is bound to a domain, only that domain.
create function control.reset_verification(project bigint, domain bigint) returns void
language sql security definer set search_path = pg_catalog as $$
  update control.domains
     set status = 'pending', verified_at = null, last_checked_at = null, last_check_error = null,
         next_check_at = null, failing_since = postern.now(), checks_failed = 0,
         unanswered_since = null, unanswered_warned_days = 0
   where project_id = project and id = domain and (project = postern.current_project() or current_setting('role') = 'postern_admin')
     and (postern.current_domain() is null or domain = postern.current_domain())
$$;
revoke execute on function control.reset_verification(bigint, bigint) from public;
grant execute on function control.reset_verification(bigint, bigint) to postern_admin, postern_customer;

-- Fencing tokens. Each lease on a name's identities has a higher number than all earlier leases. A worker that has lost its
-- lease finds a higher number and writes nothing.
create sequence control.identity_lease_no;
grant usage on sequence control.identity_lease_no to postern_admin;

-- States, changed by core/control/domains/reconcile-identities.ts. An edit or a deletion sets `retiring_at`.
--   registering → registered              the provider has registered it
--   registering, registered → retiring    the domain has a replacement, or was deleted
--   retiring → retired                    the provider has deleted it, or another identity still uses it at the provider
--   registering, retiring → error         the provider call failed; it is retried until it succeeds
--   registered → registering              a check found that the provider has lost it
create table control.identities (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  -- Null if the domain was deleted and only deregistration remains.
  domain_id bigint,
  name text not null,
  provider control.mta_provider not null,
  -- The account and region at SES. Null for the operator's own MTAs.
  account text,
  region text,
  state text not null default 'registering'
    check (state in ('registering', 'registered', 'retiring', 'retired', 'error')),
  last_error text,
  -- When the next attempt is due, or null if reconciled.
  reconcile_at timestamptz default postern.now(),
  attempts integer not null default 0,
  -- The end of the lease of the worker that is reconciling this name.
  leased_until timestamptz,
  -- The number of the last lease. A write with an earlier number is rejected.
  lease_no bigint not null default 0,
  registered_at timestamptz,
  -- From this time on, no mail is accepted for the identity. Null for the domain's live identity.
  retiring_at timestamptz,
  retired_at timestamptz,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id),
  foreign key (project_id, domain_id) references control.domains (project_id, id)
    on delete set null (domain_id),
  check (retiring_at is not null or domain_id is not null)
);
create unique index identities_one_live on control.identities (domain_id) where retiring_at is null;
create index on control.identities (domain_id);
-- Finds the rows that refer to the same identity at the provider.
create index on control.identities (name, provider, account, region) where state <> 'retired';
create index on control.identities (reconcile_at) where reconcile_at is not null;
create index on control.identities (name);
call postern.protect('control.identities');
create policy domain on control.identities as restrictive to postern_customer
  using (postern.current_domain() is null or domain_id = postern.current_domain());
grant select, insert, update, delete on control.identities to postern_admin;
grant select, insert (project_id, domain_id, name, provider, account, region),
      update (state, retiring_at, reconcile_at, attempts, last_error, updated_at)
  on control.identities to postern_customer;
grant select on control.identities to postern_mail, postern_readonly;

-- A rotation adds a key. The key becomes active when its record is found in DNS: pending → active → retired. Keys are
-- deleted when the identity is retired.
create table control.dkim_keys (
  -- Allocated before the insert, because the encrypted private key is bound to it.
  id bigint generated by default as identity primary key,
  project_id bigint not null references control.projects,
  identity_id bigint not null,
  selector text not null,
  public_key text not null,
  -- Deleted when the key is retired.
  encrypted_private_key bytea,
  state text not null default 'pending' check (state in ('pending', 'active', 'retired')),
  created_at timestamptz not null default postern.now(),
  activated_at timestamptz,
  retired_at timestamptz,
  unique (identity_id, selector),
  foreign key (project_id, identity_id) references control.identities (project_id, id),
  check ((state = 'retired') = (encrypted_private_key is null))
);
create unique index dkim_keys_one_active on control.dkim_keys (identity_id) where state = 'active';
create unique index dkim_keys_one_pending on control.dkim_keys (identity_id) where state = 'pending';
call postern.protect('control.dkim_keys');
create policy domain on control.dkim_keys as restrictive to postern_customer
  using (postern.current_domain() is null
         or exists (select from control.identities as identities where identities.id = identity_id));
grant usage on sequence control.dkim_keys_id_seq to postern_admin, postern_customer;
grant select, insert, update, delete on control.dkim_keys to postern_admin;
grant select (id, project_id, identity_id, selector, public_key, state, created_at, activated_at, retired_at),
      insert (id, project_id, identity_id, selector, public_key, encrypted_private_key), delete
  on control.dkim_keys to postern_customer;
grant select on control.dkim_keys to postern_mail;
grant select (id, project_id, identity_id, selector, public_key, state, created_at, activated_at, retired_at)
  on control.dkim_keys to postern_readonly;

-- The number of DKIM keys that a project generated on a UTC day, by any operation. Limited by max_dkim_keys_per_day.
create table control.dkim_usage (
  project_id bigint primary key references control.projects on delete cascade,
  day date not null,
  keys_made integer not null
);
call postern.protect('control.dkim_usage');
grant select, insert, update, delete on control.dkim_usage to postern_admin;
grant select, insert (project_id, day, keys_made), update (day, keys_made) on control.dkim_usage to postern_customer;
grant select on control.dkim_usage to postern_readonly;

create table control.dns_records (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  domain_id bigint not null,
  purpose text not null check (purpose in ('ownership', 'dkim', 'return_path', 'mx', 'dmarc')),
  type text not null check (type in ('TXT', 'CNAME', 'MX')),
  name text not null,
  value text not null,
  status text not null default 'pending' check (status in ('pending', 'verified', 'failed')),
  checked_at timestamptz,
  unique (domain_id, purpose, type, name, value),
  foreign key (project_id, domain_id) references control.domains (project_id, id) on delete cascade
);
call postern.protect('control.dns_records');
create policy domain on control.dns_records as restrictive to postern_customer
  using (postern.current_domain() is null or domain_id = postern.current_domain());
grant select, insert, update, delete on control.dns_records to postern_admin;
grant select, insert (project_id, domain_id, purpose, type, name, value), delete
  on control.dns_records to postern_customer;
grant select on control.dns_records to postern_mail, postern_readonly;

-- Domain names that a project claimed or verified. A row has no project, so it is kept when the domain and the project are
-- deleted: another project receives mail for the name only after it has verified the name (control.mail_holder,
-- docs/decisions/0014-inbound-belongs-to.md). Names are stored as the SHA-256 of their lower-case A-labels
-- (docs/decisions/0021-tombstones-and-consent.md). The functions below read this table as the owner.
create table control.name_tombstones (
  digest bytea primary key check (length(digest) = 32),
  -- False if the name was only claimed. In that case, its subdomains are not affected.
  was_verified boolean not null,
  created_at timestamptz not null default postern.now()
);
-- Cells have a replica of this table, and the mail role reads it.
grant select on control.name_tombstones to postern_mail;

create function control.name_digest(name text) returns bytea
language sql immutable strict parallel safe set search_path = pg_catalog
return sha256(convert_to(lower(name), 'UTF8'));
revoke execute on function control.name_digest(text) from public;

create function control.record_verification() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  new.verified_name := new.name;
  insert into control.name_tombstones as held (digest, was_verified) values (control.name_digest(new.name), true)
    on conflict (digest) do update set was_verified = true where not held.was_verified;
  return new;
end
$$;
revoke execute on function control.record_verification() from public;

create trigger record_verification before insert on control.domains
  for each row when (new.status = 'verified') execute function control.record_verification();

-- Does not fire if a check finds that the domain is still verified.
create trigger record_new_verification before update of status, name on control.domains
  for each row when (new.status = 'verified' and (old.status <> 'verified' or old.name <> new.name))
  execute function control.record_verification();

-- While a project exists, its identities record its claims. They are deleted together with the project.
create function control.record_claim() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into control.name_tombstones (digest, was_verified) values (control.name_digest(old.name), false)
    on conflict (digest) do nothing;
  return null;
end
$$;
revoke execute on function control.record_claim() from public;

create trigger record_claim after delete on control.identities
  for each row execute function control.record_claim();

-- The domain that receives mail for a name. It belongs to the project that has verified the name, otherwise to the only
-- project that has ever claimed it (docs/decisions/0014-inbound-belongs-to.md). 0 if several projects claim the name and
-- none has verified it. Null if there is no claim.
--
-- - A project that has verified a name also receives mail for its subdomains, for example because of a wildcard record.
--   Another project receives that mail only if it has verified the subdomain.
-- - If a name has a tombstone, or a name above it has the tombstone of a verified name, a project without current
--   verification receives mail only if it previously verified one of the two names or a name between them.
--
-- Runs as the owner, because it reads rows outside the project of a customer's transaction.
create function control.mail_holder(wanted text) returns bigint
language sql stable security definer set search_path = pg_catalog as $$
  select coalesce(
    (select id from control.domains where name = wanted and status = 'verified'),
    (select case when not exists (select from control.identities as others
                                   where others.name = wanted and others.project_id <> min(domains.project_id))
                      and not exists (
                        select from control.domains as above
                         where above.name = any(array(
                                 select array_to_string(labels[no:], '.') from string_to_array(wanted, '.') as labels,
                                        generate_series(2, array_length(labels, 1)) as no))
                           and above.status = 'verified' and above.project_id <> min(domains.project_id))
                      and not exists (
                        select from (select array_to_string(labels[no:], '.') as name, no
                                       from string_to_array(wanted, '.') as labels,
                                            generate_series(1, array_length(labels, 1)) as no) as held
                          join control.name_tombstones as tombstones
                            on tombstones.digest = control.name_digest(held.name)
                         where (held.no = 1 or tombstones.was_verified)
                           and not exists (select from control.domains as own
                                            where own.project_id = min(domains.project_id)
                                              and right('.' || wanted, length(own.verified_name) + 1)
                                                    = '.' || own.verified_name
                                              and length(own.verified_name) >= length(held.name)))
                      and count(*) = 1 then min(domains.id) else 0 end
       from control.domains as domains where domains.name = wanted having count(*) > 0))
$$;
revoke execute on function control.mail_holder(text) from public;
grant execute on function control.mail_holder(text) to postern_admin, postern_customer, postern_mail;

-- Deletes the transaction's project. Its domains, endpoints, routes and API keys must already be deleted and every identity
-- deregistered. Its audit rows remain.
create function control.delete_project() returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
  project bigint := postern.current_project();
begin
  delete from control.identities where project_id = project and state = 'retired';
  delete from control.members where project_id = project;
  delete from control.projects where id = project;
end
$$;
revoke execute on function control.delete_project() from public;
grant execute on function control.delete_project() to postern_customer;

-- Endpoints: HTTPS receivers of events.

create table control.endpoints (
  -- Allocated before the insert, because the encrypted secret is bound to it.
  id bigint generated by default as identity primary key,
  project_id bigint not null references control.projects,
  name text not null,
  url text not null,
  events text[] not null,
  is_active boolean not null default true,
  disabled_reason text,
  encrypted_secret bytea not null,
  -- The last four characters, to distinguish secrets.
  secret_hint text not null check (length(secret_hint) = 4),
  secret_rotated_at timestamptz,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id)
);
-- Used by two queries: the check for an active endpoint in the project, which runs for every event, and the query for the
-- next endpoints of a fan-out.
create index on control.endpoints (project_id, id) where is_active;
call postern.protect('control.endpoints');
grant usage on sequence control.endpoints_id_seq to postern_admin, postern_customer;
grant select, insert, update, delete on control.endpoints to postern_admin;
grant select (id, project_id, name, url, events, is_active, disabled_reason, secret_hint, secret_rotated_at, version,
        created_at, updated_at), insert (id, project_id, name, url, events, is_active, encrypted_secret, secret_hint),
      update (name, url, events, is_active, disabled_reason, encrypted_secret, secret_hint, secret_rotated_at, version,
        updated_at), delete
  on control.endpoints to postern_customer;
grant select on control.endpoints to postern_mail;
grant select (id, project_id, name, url, events, is_active, disabled_reason, secret_hint, secret_rotated_at, version,
        created_at, updated_at)
  on control.endpoints to postern_readonly;

create table control.endpoint_stats (
  endpoint_id bigint primary key,
  project_id bigint not null,
  last_success_at timestamptz,
  consecutive_failures integer not null default 0,
  -- When these values were read from the mail database, by that database's real clock. Older values do not replace newer
  -- ones.
  counted_at timestamptz not null default '-infinity',
  updated_at timestamptz not null default postern.now(),
  foreign key (project_id, endpoint_id) references control.endpoints (project_id, id) on delete cascade
);
call postern.protect('control.endpoint_stats');
grant select, insert, update, delete on control.endpoint_stats to postern_admin;
grant select on control.endpoint_stats to postern_customer, postern_mail, postern_readonly;

-- Routes: the handling of inbound mail. Forwarding requires the target's consent.

create table control.routes (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  domain_id bigint not null,
  match text not null check (match in ('address', 'catch_all')),
  address text check (address = lower(address)),
  action text not null check (action in ('endpoint', 'forward', 'reject', 'drop')),
  endpoint_id bigint,
  forward_to text,
  -- When the target of a forward consented to receive mail. While this is null, nothing is forwarded. Only the functions
  -- below write it.
  forward_confirmed_at timestamptz,
  is_active boolean not null default true,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  foreign key (project_id, domain_id) references control.domains (project_id, id),
  foreign key (project_id, endpoint_id) references control.endpoints (project_id, id),
  check ((match = 'address') = (address is not null)),
  check ((action = 'endpoint') = (endpoint_id is not null)),
  check ((action = 'forward') = (forward_to is not null)),
  check (forward_confirmed_at is null or forward_to is not null)
);
create unique index routes_one_per_address on control.routes (domain_id, address) where match = 'address';
create unique index routes_one_catch_all on control.routes (domain_id) where match = 'catch_all';
create index on control.routes (project_id, id);
create index on control.routes (endpoint_id) where endpoint_id is not null;
create index routes_by_address on control.routes ((address collate "C"), id);
create index on control.routes (project_id, lower(forward_to)) where forward_to is not null;
-- The routes of one domain, newest first.
create index on control.routes (project_id, domain_id, id);
call postern.make_searchable('control.routes', 'address');
call postern.protect('control.routes');
create policy domain on control.routes as restrictive to postern_customer
  using (postern.current_domain() is null or domain_id = postern.current_domain());
grant select, insert, update, delete on control.routes to postern_admin;
grant select, insert (project_id, domain_id, match, address, action, endpoint_id, forward_to, is_active),
      update (domain_id, match, address, action, endpoint_id, forward_to, is_active, version, updated_at), delete
  on control.routes to postern_customer;
grant select on control.routes to postern_mail, postern_readonly;

-- Pending consent: one row for each address that a project's routes forward to and that has not consented yet. Triggers on
-- control.routes insert and delete the rows, so there are never more rows than routes.
--   pending (sent_at null) → sent      the worker added the message to the queue of system mail, because the domain is verified
--                                      and the daily limits allow it (core/control/routes/forward-confirmations.ts)
--   sent → pending                     another message was requested, and `round` was incremented; or the message could not be
--                                      composed any more
--   sent → (deleted)                   the target consented, or the last route to it was deleted
create table control.forward_confirmations (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  address text not null check (address = lower(address)),
  requested_at timestamptz not null default postern.now(),
  round integer not null default 1,
  sent_at timestamptz,
  -- The limits and the domain are not checked again before this time.
  postponed_until timestamptz,
  -- SHA-256 of the token in the last message.
  token_hash bytea unique check (length(token_hash) = 32),
  expires_at timestamptz,
  unique (project_id, address)
);
create index on control.forward_confirmations (requested_at) where sent_at is null;
call postern.protect('control.forward_confirmations');
grant select, update, delete on control.forward_confirmations to postern_admin;

-- Confirmation messages sent, for the daily limits. This is a separate table, because a project can delete and recreate the
-- rows above.
create table control.forward_confirmation_mails (
  id bigint generated always as identity primary key,
  project_id bigint not null,
  address_digest bytea not null check (length(address_digest) = 32),
  sent_at timestamptz not null default postern.now()
);
create index on control.forward_confirmation_mails (project_id, sent_at);
create index on control.forward_confirmation_mails (address_digest, sent_at);
create index on control.forward_confirmation_mails (sent_at);
call postern.protect('control.forward_confirmation_mails');
grant select, insert, delete on control.forward_confirmation_mails to postern_admin;

-- A new target counts as confirmed if it has consented to another of the project's routes.
create function control.copy_forward_consent() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  if tg_op = 'UPDATE' and lower(new.forward_to) is not distinct from lower(old.forward_to) then
    return new;
  end if;
  new.forward_confirmed_at := (
    select min(routes.forward_confirmed_at) from control.routes as routes
     where routes.project_id = new.project_id and lower(routes.forward_to) = lower(new.forward_to)
       and routes.id is distinct from new.id);
  return new;
end
$$;
revoke execute on function control.copy_forward_consent() from public;

create trigger copy_forward_consent before insert or update of forward_to on control.routes
  for each row execute function control.copy_forward_consent();

create function control.keep_forward_confirmations() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  if tg_op <> 'INSERT' and old.forward_to is not null then
    delete from control.forward_confirmations as confirmations
     where confirmations.project_id = old.project_id and confirmations.address = lower(old.forward_to)
       and not exists (select from control.routes as routes
                        where routes.project_id = old.project_id and lower(routes.forward_to) = lower(old.forward_to));
  end if;
  if tg_op <> 'DELETE' and new.forward_to is not null and new.forward_confirmed_at is null then
    insert into control.forward_confirmations (project_id, address) values (new.project_id, lower(new.forward_to))
      on conflict (project_id, address) do nothing;
  end if;
  return null;
end
$$;
revoke execute on function control.keep_forward_confirmations() from public;

create trigger keep_forward_confirmations after insert or delete or update of forward_to on control.routes
  for each row execute function control.keep_forward_confirmations();

-- Requests another message with a new link. Returns the number of requests, or null if no consent is pending. A customer's
-- transaction can request it only for its own project.
create function control.request_forward_confirmation(project bigint, target text) returns integer
language sql security definer set search_path = pg_catalog as $$
  update control.forward_confirmations
     set round = round + 1, sent_at = null, requested_at = postern.now()
   where project_id = project and address = lower(target)
     and (project = postern.current_project() or current_setting('role') = 'postern_admin')
  returning round
$$;
revoke execute on function control.request_forward_confirmation(bigint, text) from public;
grant execute on function control.request_forward_confirmation(bigint, text) to postern_admin, postern_customer;

-- The address and domains of a confirmation link. Returns no row if the link was used or replaced, or has expired.
create function control.forward_confirmation_of(hash bytea) returns table (address text, domain_names text[])
language sql stable security definer set search_path = pg_catalog as $$
  select confirmations.address,
         array(select distinct domains.name from control.routes as routes
                 join control.domains as domains on domains.id = routes.domain_id and domains.status = 'verified'
                where routes.project_id = confirmations.project_id and lower(routes.forward_to) = confirmations.address
                order by domains.name limit 10)
    from control.forward_confirmations as confirmations
   where confirmations.token_hash = hash and confirmations.expires_at > postern.now()
$$;
revoke execute on function control.forward_confirmation_of(bytea) from public;
grant execute on function control.forward_confirmation_of(bytea) to postern_customer;

-- Confirms a link once. Returns false if the link was used or replaced, or has expired.
create function control.confirm_forward(hash bytea) returns boolean
language plpgsql security definer set search_path = pg_catalog as $$
declare
  project bigint := (select project_id from control.forward_confirmations where token_hash = hash);
  target text;
begin
  -- Locks the project, as every change to its routes does.
  perform from control.projects where id = project for no key update;
  if not found then
    return false;
  end if;
  delete from control.forward_confirmations
   where token_hash = hash and expires_at > postern.now() returning address into target;
  if not found then
    return false;
  end if;
  update control.routes set forward_confirmed_at = postern.now()
   where project_id = project and lower(forward_to) = target and forward_confirmed_at is null;
  return true;
end
$$;
revoke execute on function control.confirm_forward(bytea) from public;
grant execute on function control.confirm_forward(bytea) to postern_customer;

-- API keys.

create table control.api_keys (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  name text not null,
  is_test boolean not null,
  -- The first characters of the secret. Only the SHA-256 of the whole secret is stored.
  prefix text not null,
  secret_hash bytea not null unique check (length(secret_hash) = 32),
  scopes text[] not null,
  domain_id bigint,
  allowed_ips cidr[] not null default '{}',
  expires_at timestamptz,
  is_active boolean not null default true,
  -- The creator of the key.
  created_by_type text check (created_by_type in ('user', 'administrator')),
  created_by_id bigint,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id),
  foreign key (project_id, domain_id) references control.domains (project_id, id)
);
create index on control.api_keys (domain_id) where domain_id is not null;
call postern.protect('control.api_keys');
grant select, insert, update, delete on control.api_keys to postern_admin;
grant select (id, project_id, name, is_test, prefix, scopes, domain_id, allowed_ips, expires_at, is_active, version,
        created_at, updated_at),
      insert (project_id, name, is_test, prefix, secret_hash, scopes, domain_id, allowed_ips, expires_at, is_active),
      update (name, prefix, secret_hash, scopes, domain_id, allowed_ips, expires_at, is_active, version, updated_at),
      delete
  on control.api_keys to postern_customer;
grant select on control.api_keys to postern_mail;
grant select (id, project_id, name, is_test, prefix, scopes, domain_id, allowed_ips, expires_at, is_active, version,
        created_at, updated_at)
  on control.api_keys to postern_readonly;
grant insert (created_by_type, created_by_id), select (created_by_type, created_by_id)
  on control.api_keys to postern_customer;
grant select (created_by_type, created_by_id) on control.api_keys to postern_readonly;

create table control.api_key_stats (
  api_key_id bigint primary key,
  project_id bigint not null,
  last_used_at timestamptz,
  foreign key (project_id, api_key_id) references control.api_keys (project_id, id) on delete cascade
);
call postern.protect('control.api_key_stats');
grant select, insert, update, delete on control.api_key_stats to postern_admin;
grant select on control.api_key_stats to postern_customer, postern_mail, postern_readonly;
-- Authentication records the use of a key.
grant insert (api_key_id, project_id, last_used_at), update (last_used_at) on control.api_key_stats to postern_customer;

-- Audit: who changed what, and why. One hash chain for each project and one (chain 0) for global objects. The primary key
-- numbers the rows of each chain without gaps. Rows outlive the objects that they describe, so there are no foreign keys
-- here.

create table control.audit (
  chain bigint not null,
  seq bigint not null check (seq > 0),
  -- The insertion order across all chains, for lists. Gaps have no meaning. The number is allocated before the insert,
  -- because the hash covers it.
  id bigint generated by default as identity unique,
  at timestamptz not null,
  -- person: a signed-in user. shell: a `postern` command on the server. system: Postern itself. policy and service_account
  -- are reserved.
  actor_kind text not null check (actor_kind in ('person', 'shell', 'policy', 'service_account', 'system')),
  -- The id of the user, policy or service account. 0 for the shell and the system.
  actor_id bigint not null,
  -- Salted SHA-256 of a row in audit_people: verifies that row while it exists, and is kept after the row is erased.
  actor_digest bytea not null check (length(actor_digest) = 32),
  subject_digest bytea check (length(subject_digest) = 32),
  request_id text not null,
  operation text collate "C" not null,
  project_id bigint,
  resource_type text collate "C" not null,
  -- Text, because the id of a message is a UUID.
  resource_id text not null,
  reason text,
  before jsonb,
  after jsonb,
  -- Other resources that the operation changed: [{resource, id, before, after}].
  related jsonb,
  -- The customer limit that an administrator exceeded: {limit, value, count}.
  limit_exception jsonb,
  -- The bulk action that the row is part of.
  bulk_id uuid,
  -- The transaction that wrote the row. An export uses it to determine what was committed when the export began, so that the
  -- next export continues from there and does not miss late commits.
  xid xid8 not null,
  prev_hash bytea not null check (length(prev_hash) = 32),
  hash bytea not null check (length(hash) = 32),
  primary key (chain, seq),
  check (chain = coalesce(project_id, 0)),
  check (case when actor_kind in ('shell', 'system') then actor_id = 0 else actor_id > 0 end)
);
-- A search reads the index entries of each kind (operation and resource type; there are a few dozen), newest first, and
-- fetches a table row only to return it. See docs/decisions/0009.
create index audit_by_kind on control.audit (operation, resource_type, id) include (at);
create index audit_of_chain on control.audit (chain, operation, resource_type, id) include (actor_id, at);
create index audit_of_actor on control.audit (actor_id, operation, resource_type, id) include (at);
create index audit_of_resource on control.audit (resource_type, resource_id, id);
create index on control.audit (at, id);
create index on control.audit (xid);
call postern.protect('control.audit');
call postern.make_append_only('control.audit');
grant usage on sequence control.audit_id_seq to postern_admin;
grant select, insert on control.audit to postern_admin;
grant select on control.audit to postern_readonly;

-- The head of each chain. An append locks the head, so appends to the same chain wait for each other and appends to
-- different chains do not. This table is a cache, not evidence: verification reads the rows.
create table control.audit_heads (
  chain bigint primary key,
  seq bigint not null,
  hash bytea not null check (length(hash) = 32)
);
grant select, insert, update on control.audit_heads to postern_admin;
grant select on control.audit_heads to postern_readonly;

-- Personal data: the actor's, the affected person's, and addresses and texts in changes, each under the path of its field
-- (core/control/audit/addresses.ts). Stored outside the chain, because a person may request erasure.
create table control.audit_people (
  audit_id bigint not null,
  -- The addresses of a list come last, so that a row is read without them.
  part text collate "C" not null,
  project_id bigint,
  salt bytea not null check (length(salt) = 16),
  email text,
  -- A person's name, or the text of a note.
  name text,
  ip text,
  user_agent text,
  primary key (audit_id, part)
);
create index on control.audit_people (email) where email is not null;
-- Addresses are stored as written; an erasure ignores case.
create index audit_people_lower_email on control.audit_people (lower(email)) where email is not null;
-- The texts of notes, which can contain the address of a person whose data is erased.
create index audit_people_texts on control.audit_people (audit_id) where part in ('before.text', 'after.text');
call postern.protect('control.audit_people');
grant select, insert, delete on control.audit_people to postern_admin;

-- Checkpoints, signed once a minute. Each covers the chain heads that changed since the previous one. Checkpoints are
-- chained too.
create table control.audit_checkpoints (
  id bigint primary key,
  at timestamptz not null,
  -- [{chain, seq, hash}], by chain.
  heads jsonb not null,
  key_id text not null,
  prev_hash bytea not null check (length(prev_hash) = 32),
  hash bytea not null unique check (length(hash) = 32),
  signature bytea not null check (length(signature) = 64)
);
-- Evidence searches the checkpoint that covers a row.
create index on control.audit_checkpoints (at, id);
call postern.make_append_only('control.audit_checkpoints');
grant select, insert on control.audit_checkpoints to postern_admin;
grant select on control.audit_checkpoints to postern_readonly;

-- The last row of each chain that a checkpoint covers, used to find the heads that have changed since. Like the heads, this
-- is a cache. It is a separate table because a checkpoint must not wait for an append's lock.
create table control.audit_covered (
  chain bigint primary key,
  seq bigint not null
);
grant select, insert, update on control.audit_covered to postern_admin;
grant select on control.audit_covered to postern_readonly;

-- Denied requests by signed-in users. They are counted per actor, operation, error and minute, kept for 90 days, and not
-- chained.
create table control.denials (
  id bigint generated always as identity unique,
  minute timestamptz not null,
  actor_id bigint not null,
  operation text not null,
  error text not null,
  -- The project of the last denied request.
  project_id bigint,
  count integer not null,
  last_request_id text not null,
  unique (minute, actor_id, operation, error)
);
create index on control.denials (actor_id, id);
call postern.protect('control.denials');
grant select, insert, update, delete on control.denials to postern_admin;
grant select on control.denials to postern_readonly;

-- Administrators' lookups of mail across all projects: who asked what, and in which projects mail was found. One row per
-- request, kept for 90 days, and not chained.
create table control.lookups (
  id bigint generated always as identity primary key,
  actor_id bigint not null,
  operation text not null,
  -- What was looked up. Contains no signed reference: with one, anyone could send a report about the message.
  question text not null check (length(question) <= 500),
  project_ids bigint[] not null check (cardinality(project_ids) <= 50),
  request_id text not null,
  created_at timestamptz not null default postern.now()
);
create index on control.lookups (actor_id, id);
-- Purged by age.
create index on control.lookups (created_at);
-- A question is updated only to erase a person's address from it.
grant select, insert, update (question), delete on control.lookups to postern_admin;
grant select on control.lookups to postern_readonly;

-- Activity: customers' changes in a project, and events in a user's account.

create table control.project_activity_heads (
  project_id bigint primary key,
  seq bigint not null default 0,
  hash bytea not null default decode(repeat('00', 32), 'hex') check (length(hash) = 32),
  purged_seq bigint not null default 0,
  purged_hash bytea not null default decode(repeat('00', 32), 'hex') check (length(purged_hash) = 32)
);
-- Finds chains that exceed the maximum length.
create index project_activity_heads_length on control.project_activity_heads ((seq - purged_seq));
call postern.protect('control.project_activity_heads');
grant select on control.project_activity_heads to postern_admin, postern_readonly;

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
  -- Null if the id would be an address.
  resource_id text,
  -- Contains no secrets. An address is stored here as {"address_digest": …} and in plain text in project_activity_people.
  before jsonb,
  after jsonb,
  prev_hash bytea not null check (length(prev_hash) = 32),
  hash bytea not null check (length(hash) = 32),
  primary key (project_id, seq),
  -- One row per operation, even if the relay applies the same outbox message several times.
  unique (project_id, request_id)
);
create index on control.project_activity (at);
call postern.protect('control.project_activity');
grant select on control.project_activity to postern_customer, postern_admin, postern_readonly;

create trigger append_only before update or truncate on control.project_activity
  for each statement execute function postern.refuse_change();

-- Personal data outside the chain: the actor's, and each address in a change under the path of its field. Can be erased.
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
call postern.protect('control.project_activity_people');
grant select on control.project_activity_people to postern_customer, postern_admin;
grant delete on control.project_activity_people to postern_admin;

create table control.user_activity_heads (
  user_id bigint primary key,
  seq bigint not null default 0,
  hash bytea not null default decode(repeat('00', 32), 'hex') check (length(hash) = 32),
  purged_seq bigint not null default 0,
  purged_hash bytea not null default decode(repeat('00', 32), 'hex') check (length(purged_hash) = 32),
  -- The number of attempts in the hour of the last attempt. Only the first few are recorded.
  attempts_hour timestamptz,
  attempts integer not null default 0
);
create index user_activity_heads_length on control.user_activity_heads ((seq - purged_seq));
grant select on control.user_activity_heads to postern_admin, postern_readonly;

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
grant select on control.user_activity to postern_identity, postern_admin, postern_readonly;

create trigger append_only before update or truncate on control.user_activity
  for each statement execute function postern.refuse_change();

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
grant select on control.user_activity_people to postern_identity, postern_admin;
grant delete on control.user_activity_people to postern_admin;

-- A customer's transaction appends only to the chain of its own project. In a transaction without a project (0), a user
-- creates or joins a project.
create function control.require_activity_of(project bigint) returns void
language plpgsql stable set search_path = pg_catalog as $$
begin
  if coalesce(postern.current_project(), 0) not in (0, project) then
    raise exception 'activity of project % in a transaction of project %', project, postern.current_project()
      using errcode = 'insufficient_privilege';
  end if;
end
$$;
revoke execute on function control.require_activity_of(bigint) from public;

-- Locks the head of a chain until the transaction ends, and returns it. The time is in the hashed format.
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
revoke execute on function control.lock_project_activity(bigint) from public;
grant execute on function control.lock_project_activity(bigint) to postern_admin, postern_customer, postern_identity;

create function control.append_project_activity(entry jsonb, people jsonb) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
  made control.project_activity := jsonb_populate_record(null::control.project_activity, entry);
begin
  perform control.require_activity_of(made.project_id);
  update control.project_activity_heads as heads set seq = made.seq, hash = made.hash
   where heads.project_id = made.project_id and heads.seq = made.seq - 1 and heads.hash = made.prev_hash;
  if not found then
    raise exception 'row % does not follow the last activity row of project %', made.seq, made.project_id;
  end if;
  insert into control.project_activity select made.*;
  -- Uses the keys of the new row, not those in the argument.
  insert into control.project_activity_people (project_id, seq, part, salt, email, ip, user_agent)
    select made.project_id, made.seq, person.part, person.salt, person.email, person.ip, person.user_agent
      from jsonb_populate_recordset(null::control.project_activity_people, people) as person;
end
$$;
revoke execute on function control.append_project_activity(jsonb, jsonb) from public;
grant execute on function control.append_project_activity(jsonb, jsonb) to postern_admin, postern_customer, postern_identity;

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
revoke execute on function control.lock_user_activity(bigint) from public;
grant execute on function control.lock_user_activity(bigint) to postern_admin, postern_customer, postern_identity;

create function control.append_user_activity(entry jsonb, people jsonb) returns void
language plpgsql security definer set search_path = pg_catalog as $$
declare
  made control.user_activity := jsonb_populate_record(null::control.user_activity, entry);
begin
  update control.user_activity_heads as heads set seq = made.seq, hash = made.hash
   where heads.user_id = made.user_id and heads.seq = made.seq - 1 and heads.hash = made.prev_hash;
  if not found then
    raise exception 'row % does not follow the last activity row of user %', made.seq, made.user_id;
  end if;
  insert into control.user_activity select made.*;
  insert into control.user_activity_people (user_id, seq, part, salt, email, ip, user_agent)
    select made.user_id, made.seq, person.part, person.salt, person.email, person.ip, person.user_agent
      from jsonb_populate_recordset(null::control.user_activity_people, people) as person;
end
$$;
revoke execute on function control.append_user_activity(jsonb, jsonb) from public;
grant execute on function control.append_user_activity(jsonb, jsonb) to postern_admin, postern_customer, postern_identity;

-- Whether a sign-in attempt is recorded: only the first `most` attempts in an hour are. For the first attempt in an hour,
-- `unrecorded` is the number of unrecorded attempts in the last active hour.
create function control.count_sign_in_attempt(of_user bigint, most integer)
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
revoke execute on function control.count_sign_in_attempt(bigint, integer) from public;
grant execute on function control.count_sign_in_attempt(bigint, integer) to postern_identity;

-- Deletes up to `at_most` rows from the beginning of chains of one kind, `project` or `user`: rows older than `kept`, and
-- all but the newest `most` rows of a chain. Returns the number of deleted rows. Skips chains that an append has locked.
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
revoke execute on function control.purge_activity(text, interval, bigint, integer) from public;
grant execute on function control.purge_activity(text, interval, bigint, integer) to postern_admin;

-- Idempotent requests, the outbox to the mail database, holds and the heartbeat.

-- Idempotency keys, claimed and stored in the operation's transaction. Kept for 24 hours.
create table control.idempotency (
  actor text not null,
  operation text not null,
  key text not null,
  project_id bigint,
  request_hash bytea not null check (length(request_hash) = 32),
  status smallint not null,
  location text,
  etag text,
  -- Null if the response contained a secret, because a secret is never returned twice. `json` preserves the order of
  -- members.
  body json,
  created_at timestamptz not null default postern.now(),
  expires_at timestamptz not null,
  unique nulls not distinct (project_id, actor, operation, key)
);
create index on control.idempotency (expires_at);
call postern.protect('control.idempotency');
grant select, insert, update, delete on control.idempotency to postern_admin;
grant select, insert, update on control.idempotency to postern_customer;

-- Outbox to the mail database. A row is inserted in the same transaction as the change. The relay applies it in a
-- transaction in the mail database that also records the id in mail.control_applied, so messages are delivered at least once
-- and applied exactly once.
create table control.outbox (
  id bigint generated always as identity primary key,
  project_id bigint,
  shard smallint generated always as (postern.shard_of(project_id)) stored,
  topic text not null,
  payload jsonb not null,
  created_at timestamptz not null default postern.now()
);
-- Requested replays that have not been relayed yet.
create index on control.outbox (project_id) where topic = 'endpoint.replay';
call postern.protect('control.outbox');
grant select, insert, delete on control.outbox to postern_admin;
grant insert on control.outbox to postern_customer;
grant select on control.outbox to postern_mail, postern_readonly, postern_customer;

-- Interventions: what an administrator or a policy has imposed on a project. `warn` changes nothing; `pace` limits the
-- number of recipients handed over per hour; `hold` stops handing over; `lock` also stops accepting. An intervention is in
-- force until `ended_at` is set: by an administrator, by a policy, or by a worker after `expires_at`. It never starts again.
--
-- A column and a table are derived from the interventions in force, and only core/control/interventions writes them:
-- control.projects.is_locked, and control.queue_restrictions, which is replicated to cells. Interventions themselves are not
-- replicated: `reason` and `evidence` can name the person who complained.
create table control.interventions (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects on delete cascade,
  kind text not null check (kind in ('warn', 'pace', 'hold', 'lock')),
  source text not null check (source in ('administrator', 'policy')),
  policy_id bigint check ((policy_id is not null) = (source = 'policy')),
  -- The administrator. Null for a policy and for a command on the server.
  started_by bigint references control.users,
  reason text not null,
  -- The only explanation that the project's members see.
  public_note text,
  pace_per_hour integer check ((kind = 'pace') = (pace_per_hour is not null) and pace_per_hour between 1 and 1000000),
  -- The figures that a policy acted on.
  evidence jsonb,
  expires_at timestamptz,
  -- A gradual release: a worker ends the pace when the mail that was ready at this time is gone.
  drains_before timestamptz check (drains_before is null or kind = 'pace'),
  ended_at timestamptz,
  ended_by text check (ended_by in ('administrator', 'expiry', 'policy', 'drained')),
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  check ((ended_at is null) = (ended_by is null)),
  unique (project_id, id)
);
create index on control.interventions (project_id, id) where ended_at is null;
create index on control.interventions (expires_at) where ended_at is null and expires_at is not null;
create index on control.interventions (id) where ended_at is null and drains_before is not null;
call postern.protect('control.interventions');
grant select, insert, update on control.interventions to postern_admin;
grant select on control.interventions to postern_readonly;
-- Neither the reason nor the evidence.
grant select (id, project_id, kind, public_note, pace_per_hour, expires_at, ended_at, created_at)
  on control.interventions to postern_customer;

-- Appeals of a project's members against interventions, at most one for each.
create table control.appeals (
  intervention_id bigint primary key,
  project_id bigint not null,
  -- Null if the user deleted the account.
  user_id bigint references control.users on delete set null,
  text text not null,
  created_at timestamptz not null default postern.now(),
  foreign key (project_id, intervention_id) references control.interventions (project_id, id) on delete cascade
);
call postern.protect('control.appeals');
grant select on control.appeals to postern_admin, postern_readonly;
grant select, insert on control.appeals to postern_customer;

-- Temporary overrides: what a project's field returns to at a given time, at most one for each field. An edit of the
-- field without an expiry deletes its row. A second temporary override keeps `original`.
create table control.reversals (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects on delete cascade,
  field text not null
    check (field in ('reputation_score', 'allow_service_mta', 'admin_plan_id', 'admin_subscription_status')),
  -- The values before and during the override, possibly JSON null. For the score, they are offsets.
  original jsonb not null,
  override jsonb not null,
  expires_at timestamptz not null,
  -- The audit row of the override. Null only within the transaction that writes that row.
  audit_id bigint,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, field)
);
create index on control.reversals (expires_at);
call postern.protect('control.reversals');
grant select, insert, update, delete on control.reversals to postern_admin;
grant select on control.reversals to postern_readonly;

-- Discards: queued mail that an administrator removes from a project's queue. mail.discards has the progress.
--   running ↔ stopped       by an administrator
--   running → finished      nothing in the queue matches any more (worker)
create table control.discards (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects on delete cascade,
  older_than timestamptz,
  tag text,
  recipient_domain text,
  -- Only messages accepted before this time match: the start, or `older_than` if that is earlier.
  accepted_before timestamptz not null,
  -- The number of recipients that matched at the start. Null if the queue was too large to count.
  matched bigint,
  reason text not null,
  stopped_at timestamptz,
  finished_at timestamptz,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
create index on control.discards (project_id, id);
-- At most one is running in each project.
create unique index on control.discards (project_id) where stopped_at is null and finished_at is null;
call postern.protect('control.discards');
grant select, insert, update, delete on control.discards to postern_admin;
grant select on control.discards to postern_readonly;

-- Notes of administrators about a project. Its members never see them.
create table control.notes (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects on delete cascade,
  text text not null check (length(text) between 1 and 4000),
  author_id bigint not null references control.users,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
create index on control.notes (project_id, id);
call postern.protect('control.notes');
grant select, insert, update, delete on control.notes to postern_admin;

-- Addresses to which no project can send. Only administrators add them. mail.suppressions has those of single projects.
-- Replicated to cells, where acceptance reads both.
create table control.platform_suppressions (
  address text primary key check (address = lower(address)),
  -- Only administrators see it.
  reason text not null,
  created_at timestamptz not null default postern.now()
);
grant select, insert, delete on control.platform_suppressions to postern_admin;
grant select (address) on control.platform_suppressions to postern_mail;
grant select on control.platform_suppressions to postern_readonly;

-- For a project that asks about one address. Customers cannot read the list.
create function control.is_platform_suppressed(wanted text) returns boolean
language sql stable strict security definer set search_path = pg_catalog
return exists (select from control.platform_suppressions where address = lower(wanted));
revoke execute on function control.is_platform_suppressed(text) from public;
grant execute on function control.is_platform_suppressed(text) to postern_admin, postern_customer;

-- Bulk actions: one operation on many projects. A worker performs it on each of the projects in control.bulk_items, in a
-- transaction that also locks this row and updates the item. Two workers therefore never perform the same bulk action at the
-- same time, and a change is neither lost nor made twice if a worker dies.
--   running ↔ stopped       by an administrator
--   running → stopped       the administrator who started it may no longer perform the operation (worker)
--   running → finished      no item is pending (worker)
create table control.bulk_actions (
  -- Also in the audit rows of the changes.
  id uuid primary key,
  operation text not null,
  -- The filter that selected the projects, once, at the start. Null: the request contained their ids.
  filter jsonb,
  -- The body of the operation, without the reason.
  body jsonb not null,
  reason text not null,
  started_by bigint not null references control.users,
  request_id text not null,
  -- The number of items, in total and by state.
  matched integer not null,
  changed integer not null default 0,
  unchanged integer not null default 0,
  refused integer not null default 0,
  stopped_at timestamptz,
  stopped_because text check (stopped_because in ('administrator', 'rights')),
  finished_at timestamptz,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  check ((stopped_at is null) = (stopped_because is null))
);
-- At most one of each administrator is running.
create unique index on control.bulk_actions (started_by) where stopped_at is null and finished_at is null;
create index on control.bulk_actions (created_at);
grant select, insert, update, delete on control.bulk_actions to postern_admin;
grant select on control.bulk_actions to postern_readonly;

-- The projects of a bulk action. Without a foreign key to the project: an item whose project does not exist is refused.
create table control.bulk_items (
  bulk_id uuid not null references control.bulk_actions on delete cascade,
  project_id bigint not null,
  state text not null default 'pending' check (state in ('pending', 'changed', 'unchanged', 'refused')),
  -- The error code and its message.
  error text check ((error is not null) = (state = 'refused')),
  message text check ((message is not null) = (state = 'refused')),
  primary key (bulk_id, project_id)
);
create index on control.bulk_items (bulk_id, project_id) where state = 'pending';
create index on control.bulk_items (bulk_id, project_id) where state = 'refused';
call postern.protect('control.bulk_items');
grant select, insert, update, delete on control.bulk_items to postern_admin;
grant select on control.bulk_items to postern_readonly;

-- Evidence: a signed file about a project, for a recipient outside the installation. A worker writes its lines in the order
-- of the sections, each section in bounded steps, and starts again where it stopped.
--   header → acts → interventions → days → messages    (worker)
--   messages → signature                               all lines are stored (worker)
--   signature → done                                   the signature is the last line (worker, after the signer)
-- A row with a `problem` is not continued. Rows are deleted after `expires_at`.
create table control.evidence (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects on delete cascade,
  requested_by bigint not null,
  range_from timestamptz not null,
  range_to timestamptz not null,
  message_ids uuid[] not null check (cardinality(message_ids) <= 100),
  section text not null default 'header'
    check (section in ('header', 'acts', 'interventions', 'days', 'messages', 'signature', 'done')),
  -- The last item of the section that was written.
  section_after bigint not null default 0,
  -- The rows of the project's audit chain and the checkpoint that covers them, chosen with the header.
  last_seq bigint,
  checkpoint_id bigint,
  -- The lines that are stored, and the hash of the last one.
  lines integer not null default 0,
  bytes bigint not null default 0,
  last_hash bytea not null default '\x0000000000000000000000000000000000000000000000000000000000000000'
    check (length(last_hash) = 32),
  -- An estimate, for the progress.
  expected_lines integer not null default 1 check (expected_lines > 0),
  problem text,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  expires_at timestamptz not null default postern.now() + interval '7 days'
);
create index on control.evidence (project_id, id);
create index on control.evidence (expires_at);
create index on control.evidence (id) where section <> 'done' and problem is null;
call postern.protect('control.evidence');
grant select, insert, update, delete on control.evidence to postern_admin;
grant select on control.evidence to postern_readonly;

-- The content of evidence. Contains personal data: postern_readonly cannot read it.
create table control.evidence_chunks (
  evidence_id bigint not null references control.evidence on delete cascade,
  -- The first line of the step that wrote the chunk, and the part of that step's text.
  line integer not null,
  part integer not null,
  project_id bigint not null,
  content bytea compression lz4 not null check (length(content) <= 1048576),
  primary key (evidence_id, line, part)
);
call postern.protect('control.evidence_chunks');
grant select, insert, delete on control.evidence_chunks to postern_admin;

-- Policies: rules that are evaluated for every project and every five minutes (mail.sending_counters). In the mode `shadow`
-- a firing is only recorded; in the mode `enforce` it starts an intervention.
create table control.policies (
  id bigint generated always as identity primary key,
  name text not null unique,
  mode text not null check (mode in ('off', 'shadow', 'enforce')),
  -- The projects that are evaluated. Null: all plans, any age.
  plan_ids bigint[],
  younger_than_days integer check (younger_than_days > 0),
  except_project_ids bigint[] not null default '{}',
  signal text not null check (signal in ('bounce_rate', 'complaint_rate', 'failure_rate', 'suppressed_rate',
                                         'volume_spike', 'score')),
  window_minutes integer not null check (window_minutes between 5 and 10080 and window_minutes % 5 = 0),
  -- Rates in percent; a factor for `volume_spike`.
  threshold float8 not null check (threshold >= 0),
  minimum_volume bigint not null check (minimum_volume > 0),
  -- The intervention that a firing starts.
  kind text not null check (kind in ('warn', 'pace', 'hold', 'lock')),
  pace_per_hour integer check ((kind = 'pace') = (pace_per_hour is not null) and pace_per_hour between 1 and 1000000),
  duration_minutes integer check (duration_minutes > 0),
  public_note text,
  cooldown_minutes integer not null check (cooldown_minutes > 0),
  -- Set when the breaker changed the mode to `shadow`. Only in that mode.
  tripped_at timestamptz check (tripped_at is null or mode = 'shadow'),
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
grant select, insert, update, delete on control.policies to postern_admin;
grant select on control.policies to postern_readonly;

-- In shadow: an operator looks at the firings, or at a backtest, before enforcing them.
insert into control.policies (name, mode, signal, window_minutes, threshold, minimum_volume, kind, pace_per_hour,
                              duration_minutes, cooldown_minutes, younger_than_days, public_note) values
  ('Bounce rate of 5 % or more', 'shadow', 'bounce_rate', 1440, 5, 500, 'warn', null, 1440, 1440, null,
   'At least 5 % of your mail in the last 24 hours bounced. Remove addresses that no longer exist from your lists.'),
  ('Bounce rate of 10 % or more', 'shadow', 'bounce_rate', 1440, 10, 500, 'pace', 500, 1440, 1440, null,
   'At least 10 % of your mail in the last 24 hours bounced. Sending is limited to 500 recipients per hour for 24 hours. Remove addresses that no longer exist from your lists.'),
  ('Bounce rate of 20 % or more in an hour', 'shadow', 'bounce_rate', 60, 20, 300, 'lock', null, 1440, 1440, null,
   'At least 20 % of your mail in the last hour bounced. The project is locked for 24 hours: new mail is rejected, and queued mail is held. Remove addresses that no longer exist from your lists.'),
  ('Complaint rate of 0.1 % or more', 'shadow', 'complaint_rate', 1440, 0.1, 1000, 'warn', null, 1440, 1440, null,
   'At least 0.1 % of the recipients of your mail in the last 24 hours marked it as spam. Send only to people who have opted in.'),
  ('Complaint rate of 0.5 % or more', 'shadow', 'complaint_rate', 1440, 0.5, 1000, 'lock', null, 1440, 1440, null,
   'At least 0.5 % of the recipients of your mail in the last 24 hours marked it as spam. The project is locked for 24 hours: new mail is rejected, and queued mail is held. Send only to people who have opted in.'),
  ('Volume spike of a new project', 'shadow', 'volume_spike', 60, 10, 500, 'pace', 500, 1440, 1440, 14,
   'The project is new, and its volume increased suddenly. Sending is limited to 500 recipients per hour for 24 hours.');

-- Firings of policies. `outcome`:
--   recorded               the policy was in shadow, or had reached its limit
--   pending → enforced     a worker has started the intervention
--   pending → skipped      before that, the policy was edited, or an intervention at least as strict was in force
create table control.firings (
  id bigint generated always as identity primary key,
  policy_id bigint not null references control.policies on delete cascade,
  policy_version bigint not null,
  project_id bigint not null references control.projects on delete cascade,
  -- The end of the bucket of five minutes that was evaluated.
  at timestamptz not null,
  value float8 not null,
  counted bigint not null,
  -- What `counted` is compared with.
  baseline float8 not null,
  outcome text not null check (outcome in ('recorded', 'pending', 'enforced', 'skipped')),
  intervention_id bigint check ((intervention_id is not null) = (outcome = 'enforced')),
  created_at timestamptz not null default postern.now(),
  unique (policy_id, project_id, at)
);
create index on control.firings (project_id, id);
create index on control.firings (policy_id, id);
create index on control.firings (policy_id, project_id, id);
create index on control.firings (policy_id, at);
create index on control.firings (id) where outcome = 'pending';
create index on control.firings (created_at);
call postern.protect('control.firings');
grant select, insert, update, delete on control.firings to postern_admin;
grant select on control.firings to postern_readonly;

-- How far the policies have been evaluated, for each cell.
create table control.policy_progress (
  cell text primary key,
  -- The end of the last bucket that was evaluated.
  evaluated_until timestamptz not null,
  -- The number of projects with counters in the hour before, for the breaker.
  active_projects integer not null default 0
);
grant select, insert, update, delete on control.policy_progress to postern_admin;
grant select on control.policy_progress to postern_readonly;

-- When the last pace, hold or lock of a project ended. Policies do not use mail that was accepted earlier. Replicated to cells.
create table control.restriction_ends (
  project_id bigint primary key references control.projects on delete cascade,
  ended_at timestamptz not null
);
call postern.protect('control.restriction_ends');
grant select, insert, update, delete on control.restriction_ends to postern_admin;
grant select on control.restriction_ends to postern_mail, postern_readonly;

-- Projects whose mail is held or paced, with the strictest of the interventions in force. The mail of locked projects is
-- also held, without a row here. Workers read this table when they claim mail.
create table control.queue_restrictions (
  project_id bigint primary key references control.projects on delete cascade,
  kind text not null check (kind in ('pace', 'hold')),
  pace_per_hour integer check ((kind = 'pace') = (pace_per_hour is not null)),
  since timestamptz not null default postern.now()
);
call postern.protect('control.queue_restrictions');
grant select, insert, update, delete on control.queue_restrictions to postern_admin;
grant select on control.queue_restrictions to postern_customer, postern_mail, postern_readonly;

-- The operator's holds: for all mail, or for one provider. control.queue_restrictions has the holds for single projects. Stored in
-- the control schema so that a hold commits together with its audit row. Workers read the holds when they claim mail.
create table control.dispatch_holds (
  scope text primary key check (scope in ('all', 'service', 'ses')),
  held_at timestamptz not null default postern.now()
);
grant select, insert, delete on control.dispatch_holds to postern_admin;
grant select on control.dispatch_holds to postern_customer, postern_mail, postern_readonly;

-- The control database's heartbeat, for cells: one row, updated every few seconds by a control worker and replicated with
-- the other published tables. Replication preserves the order of commits, so a cell that has this row has everything that
-- the control database committed before it. No row is inserted here: migrations also run in cells, where the initial copy
-- needs an empty table.
create table control.heartbeat (
  id smallint primary key default 1 check (id = 1),
  at timestamptz not null
);
grant select, insert, update on control.heartbeat to postern_admin;
grant select on control.heartbeat to postern_mail, postern_readonly;

-- Attention: the projects that an administrator should look at, one row per project and cause. Triggers on the source tables
-- write it in the transaction in which a cause begins or ends, so the overview never searches for projects. Causes:
--   intervention     an intervention is in force. `resource_id`: the strictest
--   firing           a policy fired in the last 24 hours. Readers ignore older rows, and a worker deletes them. `resource_id`: the
--                    policy that fired last
--   appeal           an intervention in force was appealed. `resource_id`: the intervention
--   domain_failing   a domain that was verified is failing. `resource_id`: the domain
--   over_plan        there are more members or domains than the current plan allows. `resource_id`: null
create table control.attention (
  project_id bigint not null references control.projects on delete cascade,
  cause text not null check (cause in ('intervention', 'firing', 'appeal', 'domain_failing', 'over_plan')),
  since timestamptz not null default postern.now(),
  resource_id bigint,
  primary key (project_id, cause)
);
create index on control.attention (cause, since, project_id);
call postern.protect('control.attention');
grant select on control.attention to postern_admin, postern_readonly;

-- The cause ends if `begun` is null.
create function control.set_attention(project bigint, its_cause text, begun timestamptz, resource bigint) returns void
language sql security definer set search_path = pg_catalog as $$
  delete from control.attention where project_id = project and cause = its_cause and begun is null;
  insert into control.attention as existing (project_id, cause, since, resource_id)
  select project, its_cause, begun, resource where begun is not null
  on conflict (project_id, cause) do update set since = excluded.since, resource_id = excluded.resource_id
    where (existing.since, existing.resource_id) is distinct from (excluded.since, excluded.resource_id);
$$;
revoke execute on function control.set_attention from public;

create function control.attend_interventions() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
declare
  found_id bigint;
  found_at timestamptz;
begin
  -- An appeal can arrive while its intervention ends: one of the two transactions waits for the other. Changes of a
  -- project's interventions are serialized by the project's lock.
  if tg_table_name = 'appeals' then
    perform from control.interventions where id = new.intervention_id for share;
  end if;
  select id, created_at into found_id, found_at from control.interventions
   where project_id = new.project_id and ended_at is null
   order by array_position(array['warn', 'pace', 'hold', 'lock'], kind) desc, id limit 1;
  perform control.set_attention(new.project_id, 'intervention', found_at, found_id);
  select appeals.intervention_id, appeals.created_at into found_id, found_at
    from control.interventions as interventions
    join control.appeals as appeals on appeals.intervention_id = interventions.id
   where interventions.project_id = new.project_id and interventions.ended_at is null
   order by appeals.created_at desc limit 1;
  perform control.set_attention(new.project_id, 'appeal', found_at, found_id);
  return null;
end
$$;
revoke execute on function control.attend_interventions() from public;

create trigger attend_new after insert on control.interventions
  for each row execute function control.attend_interventions();

create trigger attend_ended after update on control.interventions
  for each row when ((old.ended_at is null) <> (new.ended_at is null)) execute function control.attend_interventions();

create trigger attend_new after insert on control.appeals
  for each row execute function control.attend_interventions();

-- Since when a domain that was verified is failing, or null. Lookups that fail count when the owner has been warned. Called in
-- the conditions of triggers, so every role can execute it.
create function control.failing_since(checked control.domains) returns timestamptz
language sql immutable set search_path = pg_catalog
return case
  when checked.status = 'verified' or (checked.status = 'failed' and checked.verified_name = checked.name) then
    coalesce(checked.failing_since, case when checked.unanswered_warned_days > 0 then checked.unanswered_since end)
end;

create function control.attend_domains() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
declare
  project bigint := old.project_id;
  found_id bigint;
  found_at timestamptz;
begin
  -- Otherwise two domains that recover at the same time would each find the other one failing.
  perform from control.attention where project_id = project and cause = 'domain_failing' for update;
  select domains.id, control.failing_since(domains) into found_id, found_at from control.domains as domains
   where project_id = project and control.failing_since(domains) is not null
   order by 2 desc, 1 limit 1;
  perform control.set_attention(project, 'domain_failing', found_at, found_id);
  return null;
end
$$;
revoke execute on function control.attend_domains() from public;

create trigger attend_changed after update on control.domains
  for each row when (control.failing_since(old) is distinct from control.failing_since(new))
  execute function control.attend_domains();

create trigger attend_deleted after delete on control.domains
  for each row when (control.failing_since(old) is not null) execute function control.attend_domains();

create function control.attend_firings() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
declare
  project bigint := case tg_op when 'INSERT' then new.project_id else old.project_id end;
  found_id bigint;
  found_at timestamptz;
begin
  select policy_id, created_at into found_id, found_at from control.firings
   where project_id = project order by id desc limit 1;
  perform control.set_attention(project, 'firing', found_at, found_id);
  return null;
end
$$;
revoke execute on function control.attend_firings() from public;

create trigger attend_new after insert on control.firings
  for each row execute function control.attend_firings();

-- Deleted with its policy. The purge of old firings changes nothing.
create trigger attend_deleted after delete on control.firings
  for each row when (old.created_at > postern.now() - interval '1 day') execute function control.attend_firings();

create function control.is_over_plan(listing control.project_listing) returns boolean
language sql stable set search_path = pg_catalog
return (select listing.member_count > plans.max_users or listing.domain_count > plans.max_domains
          from control.plans as plans where plans.id = listing.plan_id);
revoke execute on function control.is_over_plan(control.project_listing) from public;

create function control.attend_listing() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  if control.is_over_plan(new) then
    insert into control.attention (project_id, cause) values (new.project_id, 'over_plan') on conflict do nothing;
  else
    delete from control.attention where project_id = new.project_id and cause = 'over_plan';
  end if;
  return null;
end
$$;
revoke execute on function control.attend_listing() from public;

create trigger attend_changed after update on control.project_listing
  for each row
  when ((old.plan_id, old.member_count, old.domain_count) is distinct from (new.plan_id, new.member_count, new.domain_count))
  execute function control.attend_listing();

-- Plans whose limits changed and whose projects have not been compared with them yet. A worker does that in pages.
create table control.plan_rechecks (
  plan_id bigint primary key references control.plans,
  after_project_id bigint not null default 0
);
grant select on control.plan_rechecks to postern_readonly;

create function control.recheck_plan() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into control.plan_rechecks (plan_id) values (new.id)
  on conflict (plan_id) do update set after_project_id = 0;
  return null;
end
$$;
revoke execute on function control.recheck_plan() from public;

create trigger recheck_plan after update on control.plans
  for each row
  when ((old.max_users, old.max_domains) is distinct from (new.max_users, new.max_domains))
  execute function control.recheck_plan();

-- Ends firings of more than a day ago and compares the projects of `plan_rechecks` with their plans, up to `at_most` of each.
-- Returns the larger number.
create function control.maintain_attention(at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog as $$
declare
  recheck control.plan_rechecks;
  page control.project_listing[];
  ended integer;
  compared integer := 0;
begin
  delete from control.attention where cause = 'firing' and project_id = any(array(
    select project_id from control.attention
     where cause = 'firing' and since <= postern.now() - interval '1 day' order by since limit at_most))
    and since <= postern.now() - interval '1 day';
  get diagnostics ended = row_count;
  loop
    exit when compared >= at_most;
    select * into recheck from control.plan_rechecks order by plan_id limit 1 for update skip locked;
    exit when not found;
    -- Waits for transactions that have compared a project with the limits before the change.
    select coalesce(array_agg(listed order by (listed).project_id), '{}') into page
      from (select listing as listed from control.project_listing as listing
             where listing.plan_id = recheck.plan_id and listing.project_id > recheck.after_project_id
             order by listing.project_id limit at_most - compared for share) as next;
    insert into control.attention (project_id, cause)
    select listed.project_id, 'over_plan' from unnest(page) as listed where control.is_over_plan(listed)
    on conflict do nothing;
    delete from control.attention
     where cause = 'over_plan'
       and project_id = any(array(select listed.project_id from unnest(page) as listed where not control.is_over_plan(listed)));
    if cardinality(page) < at_most - compared then
      delete from control.plan_rechecks where plan_id = recheck.plan_id;
    else
      update control.plan_rechecks set after_project_id = page[cardinality(page)].project_id
       where plan_id = recheck.plan_id;
    end if;
    compared := compared + cardinality(page);
  end loop;
  return greatest(ended, compared);
end
$$;
revoke execute on function control.maintain_attention(integer) from public;
grant execute on function control.maintain_attention(integer) to postern_admin;
