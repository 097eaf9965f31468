-- Endpoints (HTTPS receivers), routes (what happens to inbound mail) and API keys.

create table control.endpoints (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  name text not null,
  url text not null,
  events text[] not null,
  is_active boolean not null default true,
  disabled_reason text,
  encrypted_secret bytea not null,
  -- The last four characters, so that two secrets can be told apart.
  secret_hint text not null check (length(secret_hint) = 4),
  secret_rotated_at timestamptz,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id)
);

create table control.endpoint_stats (
  endpoint_id bigint primary key,
  project_id bigint not null,
  last_success_at timestamptz,
  consecutive_failures integer not null default 0,
  updated_at timestamptz not null default postern.now(),
  foreign key (project_id, endpoint_id) references control.endpoints (project_id, id) on delete cascade
);

create table control.routes (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  domain_id bigint not null,
  match text not null check (match in ('address', 'catch_all')),
  address text check (address = lower(address)),
  action text not null check (action in ('endpoint', 'forward', 'reject', 'drop')),
  endpoint_id bigint,
  forward_to text,
  is_active boolean not null default true,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  foreign key (project_id, domain_id) references control.domains (project_id, id),
  foreign key (project_id, endpoint_id) references control.endpoints (project_id, id),
  check ((match = 'address') = (address is not null)),
  check ((action = 'endpoint') = (endpoint_id is not null)),
  check ((action = 'forward') = (forward_to is not null))
);
create unique index routes_one_per_address on control.routes (domain_id, address) where match = 'address';
create unique index routes_one_catch_all on control.routes (domain_id) where match = 'catch_all';
create index on control.routes (project_id, id);
create index on control.routes (endpoint_id) where endpoint_id is not null;

create table control.api_keys (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  name text not null,
  is_test boolean not null,
  -- The readable start of the secret; the secret itself is known by its SHA-256 alone.
  prefix text not null,
  secret_hash bytea not null unique check (length(secret_hash) = 32),
  scopes text[] not null,
  domain_id bigint,
  allowed_ips cidr[] not null default '{}',
  expires_at timestamptz,
  is_active boolean not null default true,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, id),
  foreign key (project_id, domain_id) references control.domains (project_id, id)
);
create index on control.api_keys (domain_id) where domain_id is not null;

create table control.api_key_stats (
  api_key_id bigint primary key,
  project_id bigint not null,
  last_used_at timestamptz,
  foreign key (project_id, api_key_id) references control.api_keys (project_id, id) on delete cascade
);

call postern.protect('control.endpoints');
call postern.protect('control.endpoint_stats');
call postern.protect('control.routes');
call postern.protect('control.api_keys');
call postern.protect('control.api_key_stats');

grant select, insert, update, delete
  on control.endpoints, control.endpoint_stats, control.routes, control.api_keys, control.api_key_stats
  to postern_admin;
grant select, insert, update, delete on control.endpoints, control.routes, control.api_keys to postern_customer;
grant select on control.endpoint_stats, control.api_key_stats to postern_customer;
grant select
  on control.endpoints, control.endpoint_stats, control.routes, control.api_keys, control.api_key_stats
  to postern_mail;
grant select on control.endpoint_stats, control.routes, control.api_key_stats to postern_readonly;
grant select (id, project_id, name, url, events, is_active, disabled_reason, secret_hint, secret_rotated_at,
              version, created_at, updated_at)
  on control.endpoints to postern_readonly;
grant select (id, project_id, name, is_test, prefix, scopes, domain_id, allowed_ips, expires_at, is_active,
              version, created_at, updated_at)
  on control.api_keys to postern_readonly;
