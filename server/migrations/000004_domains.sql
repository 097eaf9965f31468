-- Domains, their identities with a provider, and the DNS records that prove them.
--
-- A domain edit never changes an identity: it registers a replacement and retires the old one, which goes
-- on signing what was accepted under it. `unique (project_id, id)` on a table lets others refer to it by
-- both columns, so that a reference across projects is impossible.

create domain control.mta_provider as text check (value in ('service', 'ses'));

create table control.domains (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  -- Lower-case A-labels.
  name text not null check (name = lower(name)),
  mta_provider control.mta_provider not null,
  status text not null default 'pending' check (status in ('pending', 'verified', 'failed')),
  -- The value of this project's own ownership record; new at each edit.
  ownership_token text not null,
  verified_at timestamptz,
  last_checked_at timestamptz,
  last_check_error text,
  next_check_at timestamptz,
  failing_since timestamptz,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id),
  unique (project_id, name)
);
-- Many projects may want a name, one may hold it.
create unique index domains_one_verified_holder on control.domains (name) where status = 'verified';
create index on control.domains (next_check_at) where next_check_at is not null;

-- States: registering → registered → retiring → retired; registering or retiring → error → the same again.
-- A job moves them; an edit only adds a row and sets the old one to retiring.
create table control.identities (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  -- Null when the domain is gone and only the deregistration is left to do.
  domain_id bigint,
  name text not null,
  provider control.mta_provider not null,
  -- Where the provider keeps it: an account and a region with SES, null with the operator's own fleet.
  account text,
  region text,
  state text not null default 'registering'
    check (state in ('registering', 'registered', 'retiring', 'retired', 'error')),
  last_error text,
  registered_at timestamptz,
  retired_at timestamptz,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id),
  foreign key (project_id, domain_id) references control.domains (project_id, id)
    on delete set null (domain_id)
);
create index on control.identities (domain_id);
-- "Does another living identity have this account, region and name?" before a deregistration.
create index on control.identities (provider, name, account, region) where state <> 'retired';

-- A rotation puts a new key beside the old one until DNS shows it: pending → active → retired.
create table control.dkim_keys (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  identity_id bigint not null,
  selector text not null,
  public_key text not null,
  encrypted_private_key bytea not null,
  state text not null default 'pending' check (state in ('pending', 'active', 'retired')),
  created_at timestamptz not null default postern.now(),
  activated_at timestamptz,
  retired_at timestamptz,
  unique (identity_id, selector),
  foreign key (project_id, identity_id) references control.identities (project_id, id)
);
create unique index dkim_keys_one_active on control.dkim_keys (identity_id) where state = 'active';

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

call postern.protect('control.domains');
call postern.protect('control.identities');
call postern.protect('control.dkim_keys');
call postern.protect('control.dns_records');

grant select, insert, update, delete
  on control.domains, control.identities, control.dkim_keys, control.dns_records
  to postern_admin, postern_customer;
grant select on control.domains, control.identities, control.dkim_keys, control.dns_records to postern_mail;
grant select on control.domains, control.identities, control.dns_records to postern_readonly;
grant select (id, project_id, identity_id, selector, public_key, state, created_at, activated_at, retired_at)
  on control.dkim_keys to postern_readonly;
