-- Plans, projects, members. Limits are checked against the plan in force: admin_plan_id, else plan_id.

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

-- What the mail plane knows about a project, fed by mail.outbox alone, so that a bounce never moves the
-- project's version. `score_offset` is the exception: the administrator's lasting correction, kept here so
-- that the score shown is one stored column that an index can order by.
create table control.project_stats (
  project_id bigint primary key references control.projects on delete cascade,
  computed_score smallint not null default 100 check (computed_score between 0 and 100),
  score_offset smallint not null default 0 check (score_offset between -100 and 100),
  reputation_score smallint not null
    generated always as (least(100, greatest(0, computed_score + score_offset))) stored,
  bounced bigint not null default 0,
  failed bigint not null default 0,
  complained bigint not null default 0,
  updated_at timestamptz not null default postern.now()
);
create index on control.project_stats (reputation_score, project_id);

create table control.members (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  -- Null until an invited person joins.
  user_id bigint references control.users,
  email text not null check (email = lower(email)),
  name text,
  role text not null check (role in ('owner', 'admin', 'developer', 'viewer')),
  -- SHA-256 of the token in the invitation mail; null once used.
  invitation_hash bytea unique,
  invited_at timestamptz not null default postern.now(),
  joined_at timestamptz,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now(),
  unique (project_id, email),
  unique (project_id, user_id),
  check (role <> 'owner' or user_id is not null)
);
create unique index members_one_owner on control.members (project_id) where role = 'owner';
create index on control.members (user_id);

-- The key that a project's secrets are encrypted with, itself wrapped by a master key.
create table control.project_keys (
  project_id bigint primary key references control.projects on delete cascade,
  master_key_id text not null,
  wrapped_key bytea not null,
  version bigint not null default 1,
  created_at timestamptz not null default postern.now(),
  updated_at timestamptz not null default postern.now()
);
create index on control.project_keys (master_key_id);

call postern.protect('control.projects', 'id');
call postern.protect('control.project_stats');
call postern.protect('control.members');
call postern.protect('control.project_keys');

grant select, insert, update on control.plans to postern_admin;
grant select on control.plans to postern_customer, postern_mail, postern_readonly;

grant select, insert, update, delete
  on control.projects, control.project_stats, control.members, control.project_keys
  to postern_admin;

grant select, update (name, version, updated_at) on control.projects to postern_customer;
grant select on control.project_stats to postern_customer;
grant select, insert, update, delete on control.members to postern_customer;
grant select, insert on control.project_keys to postern_customer;

grant select on control.projects, control.project_stats, control.project_keys to postern_mail;
grant select (id, project_id, user_id, email, name, role, joined_at) on control.members to postern_mail;

grant select on control.projects, control.project_stats to postern_readonly;
grant select (id, project_id, user_id, email, name, role, invited_at, joined_at, version, created_at, updated_at)
  on control.members to postern_readonly;
