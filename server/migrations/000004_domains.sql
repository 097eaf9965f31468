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
  -- Null: nobody looks any more until somebody asks.
  next_check_at timestamptz,
  -- Since when a record that is needed has been missing; from the start, for one that was never verified.
  failing_since timestamptz default postern.now(),
  -- How often in a row it was looked for in vain.
  checks_failed integer not null default 0,
  -- Rotations of its DKIM key on that UTC day: a key that is replaced before DNS shows it leaves no row to count.
  dkim_rotations smallint not null default 0,
  dkim_rotated_on date,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id),
  unique (project_id, name)
);
-- Many projects may want a name, one may hold it.
create unique index domains_one_verified_holder on control.domains (name) where status = 'verified';
create index on control.domains (next_check_at) where next_check_at is not null;
create trigger list_count after insert or delete on control.domains
  for each row execute function control.list_count('domain_count');

-- Everything that was proved of a domain is to be proved anew. As the owner, so that a customer's role need not be able
-- to write the columns that say it was. A customer's transaction reaches no other project than
-- the one it names.
create function control.reset_proof(project bigint, domain bigint) returns void
language sql security definer set search_path = pg_catalog as $$
  update control.domains
     set status = 'pending', verified_at = null, last_checked_at = null, last_check_error = null,
         next_check_at = null, failing_since = postern.now(), checks_failed = 0
   where project_id = project and id = domain and (project = postern.current_project() or current_setting('role') = 'postern_admin')
$$;
revoke execute on function control.reset_proof(bigint, bigint) from public;
grant execute on function control.reset_proof(bigint, bigint) to postern_admin, postern_customer;

-- States, as core/control/domains/reconcile-identities.ts moves them; an edit or a delete adds a row and sets `retiring_at`:
--   registering → registered              the provider has it
--   registering, registered → retiring    the domain has a replacement, or is gone
--   retiring → retired                    the provider has it no more, or keeps it for another identity
--   registering, retiring → error         the provider refused; tried again until it does not
--   registered → registering              a look found that the provider has lost it
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
  -- When the next attempt is due; null when there is nothing to do.
  settle_at timestamptz default postern.now(),
  attempts integer not null default 0,
  -- Whoever speaks with the provider about this name; nobody else does until then.
  leased_until timestamptz,
  registered_at timestamptz,
  -- From then on nothing new is accepted under it. Null: it is the domain's living identity.
  retiring_at timestamptz,
  retired_at timestamptz,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id),
  foreign key (project_id, domain_id) references control.domains (project_id, id)
    on delete set null (domain_id),
  check (retiring_at is not null or domain_id is not null)
);
create unique index identities_one_living on control.identities (domain_id) where retiring_at is null;
create index on control.identities (domain_id);
-- All that are one and the same at the provider.
create index on control.identities (name, provider, account, region) where state <> 'retired';
create index on control.identities (settle_at) where settle_at is not null;

-- A rotation puts a new key beside the old one until DNS shows it: pending → active → retired. Deleted once the
-- identity is retired.
create table control.dkim_keys (
  -- Taken before the row is written, because the private key's encryption is bound to it.
  id bigint generated by default as identity primary key,
  project_id bigint not null references control.projects,
  identity_id bigint not null,
  selector text not null,
  public_key text not null,
  -- Destroyed when the key retires.
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
  to postern_admin;
grant usage on sequence control.dkim_keys_id_seq to postern_admin, postern_customer;
-- What a customer's edit writes. Nothing here makes a domain verified, an identity registered or a key active: that is
-- the worker's, and what was proved is taken back by control.reset_proof alone.
grant select, insert (project_id, name, mta_provider, ownership_token),
      update (name, mta_provider, ownership_token, next_check_at, dkim_rotations, dkim_rotated_on, version, updated_at),
      delete
  on control.domains to postern_customer;
grant select, insert (project_id, domain_id, name, provider, account, region),
      update (state, retiring_at, settle_at, attempts, last_error, updated_at)
  on control.identities to postern_customer;
grant select (id, project_id, identity_id, selector, public_key, state, created_at, activated_at, retired_at),
      insert (id, project_id, identity_id, selector, public_key, encrypted_private_key), delete
  on control.dkim_keys to postern_customer;
grant select, insert (project_id, domain_id, purpose, type, name, value), delete
  on control.dns_records to postern_customer;
grant select on control.domains, control.identities, control.dkim_keys, control.dns_records to postern_mail;
grant select on control.domains, control.identities, control.dns_records to postern_readonly;
grant select (id, project_id, identity_id, selector, public_key, state, created_at, activated_at, retired_at)
  on control.dkim_keys to postern_readonly;
