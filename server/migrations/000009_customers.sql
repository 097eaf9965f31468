-- What customers and invited people do that reaches beyond the rows of one project. Each function does one thing, as the
-- owner, so that no plane's role need be granted more; none can be executed by anybody who is not named here.

-- The account of somebody who is to be a member; no other way leads from the customers' role to the users.
create function control.account_at(address text) returns table (user_id bigint, name text)
language sql stable security definer set search_path = pg_catalog as $$
  select users.id, users.name from control.users as users where users.email = address
$$;

-- A project with its owner. No row when the plan cannot be assigned. The owner's row is locked: projects of an owner are
-- made, and counted, one after the other.
create function control.create_project(owner bigint, project_name text, plan bigint) returns setof control.projects
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
  insert into control.projects (user_id, name, plan_id) values (owner, project_name, plan) returning * into made;
  insert into control.project_stats (project_id) values (made.id);
  insert into control.members (project_id, user_id, email, name, role, joined_at)
    select made.id, users.id, users.email, users.name, 'owner', postern.now()
      from control.users as users where users.id = owner;
  return next made;
end
$$;

create function control.count_projects(owner bigint) returns integer
language sql stable security definer set search_path = pg_catalog as $$
  select count(*)::integer from control.projects as projects where projects.user_id = owner
$$;

-- The transaction's own project, and no other. Domains, endpoints, routes and API keys refer to it and must be gone, and
-- so must every identity that a provider still has; its audit stays.
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

-- How long the token of an invitation is good.
create function control.invitation_lifetime() returns interval
language sql immutable return interval '14 days';

-- Whoever has the token of an invitation becomes the member. No row when it is none, was used or has expired; with
-- `is_joined` false, the membership that this user has there already.
create function control.join_project(token_hash bytea, joining bigint)
returns table (is_joined boolean, id bigint, project_id bigint, user_id bigint, email text, name text, role text,
               invited_at timestamptz, joined_at timestamptz, version bigint, created_at timestamptz,
               updated_at timestamptz)
language plpgsql security definer set search_path = pg_catalog as $$
#variable_conflict use_column
declare
  project bigint := (select project_id from control.members where invitation_hash = token_hash);
begin
  -- As whoever changes the members of a project: one after the other.
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

-- An account for an invited person, with the address that the invitation went to: who has the token has read its mail.
-- No row when the token is none, was used or has expired; null when there is an account with the address.
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

revoke execute on function control.account_at(text), control.create_project(bigint, text, bigint),
  control.count_projects(bigint), control.delete_project(), control.join_project(bytea, bigint), control.create_invited_user(bytea, text)
  from public;
grant execute on function control.account_at(text) to postern_admin, postern_customer;
grant execute on function control.create_project(bigint, text, bigint), control.count_projects(bigint),
  control.delete_project() to postern_customer;
grant execute on function control.join_project(bytea, bigint) to postern_customer, postern_identity;
grant execute on function control.create_invited_user(bytea, text) to postern_identity;

-- Whether mail still waits, before a project is given up.
grant select (shard, project_id) on mail.dispatch to postern_customer;
