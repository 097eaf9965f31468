-- Users and how they prove who they are. Sessions, accounts, two_factors, verifications, signing_keys and
-- sign_in_rates are Better Auth's (mapped in core/control/access/better-auth.ts), readable by postern_identity alone.

create table control.users (
  id bigint generated always as identity primary key,
  email text not null unique check (email = lower(email)),
  name text not null,
  email_verified boolean not null default false,
  image text,
  two_factor_enabled boolean not null default false,
  role text not null default 'user' check (role in ('user', 'admin')),
  is_active boolean not null default true,
  -- Access tokens carry the generation they were made in; raising it ends all of them at once.
  token_generation integer not null default 1,
  token_generation_at timestamptz not null default postern.now(),
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
-- For lists: what is rare among users is found at once, wherever it is.
create index users_administrators on control.users (id) where role = 'admin';
create index users_inactive on control.users (id) where not is_active;
call postern.make_searchable('control.users', 'email', 'lower(name)');

-- A user of an outside OIDC issuer, pinned by (iss, sub): an email address can change hands.
create table control.external_logins (
  issuer text not null,
  subject text not null,
  user_id bigint not null references control.users on delete cascade,
  created_at timestamptz not null default postern.now(),
  primary key (issuer, subject)
);
create index on control.external_logins (user_id);

create table control.sessions (
  id bigint generated always as identity primary key,
  user_id bigint not null references control.users on delete cascade,
  token text not null unique,
  -- When a second factor was given for this very session; null = password alone.
  second_factor_at timestamptz,
  ip_address text,
  user_agent text,
  expires_at timestamptz not null,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
create index on control.sessions (user_id);

-- Use renews a session, but not beyond a week from its sign-in.
create function control.limit_session() returns trigger
language plpgsql as $$
begin
  new.expires_at := least(new.expires_at, new.created_at + interval '7 days');
  return new;
end
$$;
create trigger limit_session before insert or update on control.sessions
  for each row execute function control.limit_session();
create index on control.sessions (expires_at);

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

create table control.two_factors (
  id bigint generated always as identity primary key,
  user_id bigint not null unique references control.users on delete cascade,
  secret text not null,
  backup_codes text not null,
  verified boolean not null default true,
  failed_verification_count integer not null default 0,
  locked_until timestamptz
);

-- RFC 6238 §5.2: a code is good for one use, also within the minute and a half in which it is valid.
create table control.used_totp_codes (
  user_id bigint not null references control.users on delete cascade,
  code_hash bytea not null,
  used_at timestamptz not null default postern.now(),
  primary key (user_id, code_hash)
);

create table control.verifications (
  id bigint generated always as identity primary key,
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
create index on control.verifications (identifier);

-- The keys that sign access tokens (a JWKS); the private half is encrypted.
create table control.signing_keys (
  id bigint generated always as identity primary key,
  public_key text not null,
  private_key text not null,
  alg text,
  crv text,
  created_at timestamptz not null default postern.now(),
  expires_at timestamptz
);

create table control.sign_in_rates (
  id bigint generated always as identity primary key,
  key text not null unique,
  count integer not null,
  last_request bigint not null
);

-- The sign-in library cannot make anyone an administrator, nor bring back a disabled user: the columns
-- `role`, `is_active` and `token_generation` are out of its reach.
grant select, update (email, name, email_verified, image, two_factor_enabled, updated_at)
  on control.users to postern_identity;
grant select, insert, update, delete
  on control.sessions, control.accounts, control.two_factors, control.used_totp_codes, control.verifications,
     control.signing_keys, control.sign_in_rates
  to postern_identity;
grant select on control.external_logins to postern_identity;

grant select, insert, update on control.users to postern_admin;
grant select, insert, delete on control.external_logins to postern_admin;
-- To end a user's sessions without being able to read their tokens.
grant delete, select (id, user_id, expires_at, created_at) on control.sessions to postern_admin;

grant select (id, email, name, is_active) on control.users to postern_mail;
grant select on control.users to postern_readonly;
