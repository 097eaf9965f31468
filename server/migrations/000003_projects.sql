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
call postern.make_searchable('control.projects', 'lower(name)');

-- What the mail plane knows about a project, fed by mail.outbox alone, so that a bounce never moves the
-- project's version. `score_offset` is the exception: the administrator's lasting correction, kept here so
-- that the score shown is one stored column.
create table control.project_stats (
  project_id bigint primary key references control.projects on delete cascade,
  computed_score smallint not null default 100 check (computed_score between 0 and 100),
  score_offset smallint not null default 0 check (score_offset between -100 and 100),
  reputation_score smallint not null
    generated always as (least(100, greatest(0, computed_score + score_offset))) stored,
  bounced bigint not null default 0,
  failed bigint not null default 0,
  complained bigint not null default 0,
  -- When the mail plane's figures were read; what was read earlier does not replace them. By the clock itself, which no
  -- test moves.
  counted_at timestamptz not null default '-infinity',
  -- When to read them again although nothing new was told: a rate falls with time and with mail that goes well.
  recount_at timestamptz,
  updated_at timestamptz not null default postern.now()
);
create index on control.project_stats (recount_at) where recount_at is not null;

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
  -- When the mail was handed over, or refused for good; null: it waits to be, or nobody was invited.
  invitation_sent_at timestamptz,
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
-- Invitations that still have to be mailed.
create index members_to_invite on control.members (invited_at) where user_id is null and invitation_sent_at is null;

-- What lists of projects are narrowed and sorted by, in one narrow row per project, so that one index holds
-- everything a list has to look at. Triggers alone write it, in the transaction that changes what it copies;
-- whether a project is beyond a limit is told by comparing its counts with the plan when a list is read, so that
-- a change of a plan's limits writes nothing here. See docs/decisions/0009.
create table control.project_listing (
  project_id bigint not null references control.projects on delete cascade,
  -- In small letters and ordered by code point, whatever the collation of the database.
  folded_name text collate "C" not null,
  is_locked boolean not null,
  -- The plan in force.
  plan_id bigint not null,
  reputation_score smallint not null,
  member_count integer not null default 0,
  domain_count integer not null default 0,
  primary key (project_id) include (folded_name, is_locked, plan_id, reputation_score, member_count, domain_count)
);

-- Each order (the primary key's is the first): of all projects, of one plan's, and of the locked, who are few
-- unless something is very wrong.
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
-- Who is beyond a limit: a stretch of each plan's.
create index listing_by_members on control.project_listing (plan_id, member_count)
  include (project_id, folded_name, is_locked, reputation_score, domain_count);
create index listing_by_domains on control.project_listing (plan_id, domain_count)
  include (project_id, folded_name, is_locked, reputation_score, member_count);

-- As the owner, because no plane may write the listing by itself.
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
create trigger list_new after insert on control.project_stats
  for each row execute function control.list_score();
create trigger list_changed after update on control.project_stats
  for each row when (old.reputation_score <> new.reputation_score) execute function control.list_score();

-- For members and for domains: the argument is the column that counts them.
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
-- Whoever may execute one could hang it on a table of their own, and write the listing as its owner.
revoke execute on function control.list_project(), control.list_score(), control.list_count() from public;
create trigger list_count after insert or delete on control.members
  for each row execute function control.list_count('member_count');

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
call postern.protect('control.project_listing');
call postern.protect('control.project_keys');

grant select, insert, update on control.plans to postern_admin;
grant select on control.plans to postern_customer, postern_mail, postern_readonly;

grant select, insert, update, delete
  on control.projects, control.project_stats, control.members, control.project_keys
  to postern_admin;

-- A customer renames a project; it is made, given up and joined by the functions of 000009.
grant select, update (name, version, updated_at) on control.projects to postern_customer;
grant select on control.project_stats to postern_customer;
grant select (id, project_id, user_id, email, name, role, invited_at, joined_at, version, created_at, updated_at),
      insert (project_id, user_id, email, name, role, joined_at, invited_by), update (role, version, updated_at), delete
  on control.members to postern_customer;
grant select, insert (project_id, master_key_id, wrapped_key) on control.project_keys to postern_customer;

grant select on control.projects, control.project_stats, control.project_keys to postern_mail;
grant select (id, project_id, user_id, email, name, role, joined_at) on control.members to postern_mail;

grant select on control.project_listing to postern_admin;
grant select on control.projects, control.project_stats, control.project_listing to postern_readonly;
grant select (id, project_id, user_id, email, name, role, invited_at, joined_at, version, created_at, updated_at)
  on control.members to postern_readonly;
