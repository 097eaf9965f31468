-- API keys that are bound to a domain, how many DKIM keys a project makes in a day, domains whose DNS gives no answer, and
-- a number for each lease on an identity.

-- The domain that a customer's transaction is bound to, beside its project: that of the API key that calls. Null: the
-- caller is not bound.
create function postern.current_domain() returns bigint
language sql stable parallel safe
return nullif(current_setting('postern.domain_id', true), '')::bigint;

-- The second wall for bound keys, around what belongs to a domain, besides that of the project. There is none around mail.messages: lists of mail read
-- a bounded number of rows of an index, and rows that a policy hides would not count toward that bound. There the
-- statements name the domain (core/mail/messages/messages.sql.ts).
create policy domain on control.domains as restrictive to postern_customer
  using (postern.current_domain() is null or id = postern.current_domain());
create policy domain on control.identities as restrictive to postern_customer
  using (postern.current_domain() is null or domain_id = postern.current_domain());
create policy domain on control.dns_records as restrictive to postern_customer
  using (postern.current_domain() is null or domain_id = postern.current_domain());
create policy domain on control.routes as restrictive to postern_customer
  using (postern.current_domain() is null or domain_id = postern.current_domain());
create policy domain on control.dkim_keys as restrictive to postern_customer
  using (postern.current_domain() is null
         or exists (select from control.identities as identities where identities.id = identity_id));

-- The routes of one domain, newest first.
create index on control.routes (project_id, domain_id, id);

-- DKIM keys that a project made on a UTC day, by whatever operation: its cap is max_dkim_keys_per_day.
create table control.dkim_usage (
  project_id bigint primary key references control.projects on delete cascade,
  day date not null,
  keys_made integer not null
);
call postern.protect('control.dkim_usage');
grant select, insert, update, delete on control.dkim_usage to postern_admin;
grant select, insert (project_id, day, keys_made), update (day, keys_made) on control.dkim_usage to postern_customer;
grant select on control.dkim_usage to postern_readonly;

alter table control.domains
  -- Since when each check has got no answer from DNS for a record that is needed. Null: the last check got all answers.
  add column unanswered_since timestamptz,
  -- The last warning that was sent about it, as a number of days.
  add column unanswered_warned_days smallint not null default 0;

-- As before, with the new columns, and for the domain that the transaction is bound to.
create or replace function control.reset_proof(project bigint, domain bigint) returns void
language sql security definer set search_path = pg_catalog as $$
  update control.domains
     set status = 'pending', verified_at = null, last_checked_at = null, last_check_error = null,
         next_check_at = null, failing_since = postern.now(), checks_failed = 0,
         unanswered_since = null, unanswered_warned_days = 0
   where project_id = project and id = domain and (project = postern.current_project() or current_setting('role') = 'postern_admin')
     and (postern.current_domain() is null or domain = postern.current_domain())
$$;

-- Verified domains whose DNS has given no answer for `days` days, until the owner of their project was mailed.
create table control.domain_notices (
  domain_id bigint primary key,
  project_id bigint not null,
  days smallint not null,
  created_at timestamptz not null default postern.now(),
  foreign key (project_id, domain_id) references control.domains (project_id, id) on delete cascade
);
create index on control.domain_notices (created_at);
call postern.protect('control.domain_notices');
grant select, insert, update, delete on control.domain_notices to postern_admin;
grant select on control.domain_notices to postern_readonly;

-- A fencing token. Each lease on the identities of a name has a number of its own, larger than all before it: who has lost
-- the lease to another finds a larger number, and writes nothing.
create sequence control.identity_lease_no;
grant usage on sequence control.identity_lease_no to postern_admin;
alter table control.identities add column lease_no bigint not null default 0;
