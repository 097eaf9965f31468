-- Names that were held stay known after their project is gone, and a forward needs the consent of its target.

-- A domain name that a project claimed or held. The row has no project, so it survives the deletion of the domain and of the
-- project: mail for such a name goes to no other project before that project has verified it (control.mail_holder,
-- docs/decisions/0014-inbound-belongs-to.md). SHA-256 of the lower-case A-labels, see
-- docs/decisions/0021-tombstones-and-consent.md. No plane reads it: the functions below do, as the owner.
create table control.name_tombstones (
  digest bytea primary key check (length(digest) = 32),
  -- False: the name was only claimed. Names below it are then unaffected.
  was_verified boolean not null,
  created_at timestamptz not null default postern.now()
);
-- Cells have a copy, and read it as they read the rest of control.
grant select on control.name_tombstones to postern_mail;

create function control.name_digest(name text) returns bytea
language sql immutable strict parallel safe set search_path = pg_catalog
return sha256(convert_to(lower(name), 'UTF8'));

-- The name as which this domain was last verified. It outlives an edit, which sets the domain back to pending: a project does
-- not lose the mail of a name that it has verified because it registers the name again.
alter table control.domains add column proved_name text;

create function control.note_proof() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  new.proved_name := new.name;
  insert into control.name_tombstones as held (digest, was_verified) values (control.name_digest(new.name), true)
    on conflict (digest) do update set was_verified = true where not held.was_verified;
  return new;
end
$$;
create trigger note_proof before insert on control.domains
  for each row when (new.status = 'verified') execute function control.note_proof();
-- Not with every check that finds it verified still.
create trigger note_new_proof before update of status, name on control.domains
  for each row when (new.status = 'verified' and (old.status <> 'verified' or old.name <> new.name))
  execute function control.note_proof();

-- Identities are what remembers a claim while its project exists. They are deleted with the project.
create function control.note_claim() returns trigger
language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into control.name_tombstones (digest, was_verified) values (control.name_digest(old.name), false)
    on conflict (digest) do nothing;
  return null;
end
$$;
create trigger note_claim after delete on control.identities
  for each row execute function control.note_claim();

revoke execute on function control.name_digest(text), control.note_proof(), control.note_claim() from public;

-- As before (000013_inbound.sql), and: a name with a tombstone, or below a name with the tombstone of a verified one, belongs
-- to a project that has not verified it now only if the project has itself verified that name before, or one between the two.
create or replace function control.mail_holder(wanted text) returns bigint
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
                                              and right('.' || wanted, length(own.proved_name) + 1)
                                                    = '.' || own.proved_name
                                              and length(own.proved_name) >= length(held.name)))
                      and count(*) = 1 then min(domains.id) else 0 end
       from control.domains as domains where domains.name = wanted having count(*) > 0))
$$;

-- When the target of a forward agreed to receive the mail; null: nothing is forwarded. Written by the functions below alone.
alter table control.routes add column forward_confirmed_at timestamptz,
  add check (forward_confirmed_at is null or forward_to is not null);
create index on control.routes (project_id, lower(forward_to)) where forward_to is not null;

-- Consent that a project waits for: one row for each address that its routes forward to and that has not agreed. The triggers
-- on control.routes insert and delete the rows, so there are never more than routes.
--   waits (sent_at null) → sent        the worker mailed a link (core/control/routes/confirmations.ts)
--   sent → waits                       somebody asked for another mail: `round` counts up
--   sent → (deleted)                   the target agreed, or no route forwards there any more
create table control.forward_confirmations (
  id bigint generated always as identity primary key,
  project_id bigint not null references control.projects,
  address text not null check (address = lower(address)),
  requested_at timestamptz not null default postern.now(),
  round integer not null default 1,
  sent_at timestamptz,
  -- A worker that sends the mail has the row until then.
  leased_until timestamptz,
  -- SHA-256 of the token in the last mail.
  token_hash bytea unique check (length(token_hash) = 32),
  expires_at timestamptz,
  unique (project_id, address)
);
create index on control.forward_confirmations (requested_at) where sent_at is null;

-- Mails that asked for consent, for the limits per day. Apart from the rows above, which a project can delete and insert again.
create table control.forward_confirmation_mails (
  id bigint generated always as identity primary key,
  project_id bigint not null,
  address_digest bytea not null check (length(address_digest) = 32),
  sent_at timestamptz not null default postern.now()
);
create index on control.forward_confirmation_mails (project_id, sent_at);
create index on control.forward_confirmation_mails (address_digest, sent_at);
create index on control.forward_confirmation_mails (sent_at);

call postern.protect('control.forward_confirmations');
call postern.protect('control.forward_confirmation_mails');
grant select, update, delete on control.forward_confirmations to postern_admin;
grant select, insert, delete on control.forward_confirmation_mails to postern_admin;

-- A route forwards to an address that agreed for another route of the project, or to none that agreed.
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
create trigger keep_forward_confirmations after insert or delete or update of forward_to on control.routes
  for each row execute function control.keep_forward_confirmations();

-- Another mail with a new link; how many were asked for, null where none is waited for. A customer's transaction reaches no
-- other project than the one it names.
create function control.request_forward_confirmation(project bigint, target text) returns integer
language sql security definer set search_path = pg_catalog as $$
  update control.forward_confirmations
     set round = round + 1, sent_at = null, requested_at = postern.now()
   where project_id = project and address = lower(target)
     and (project = postern.current_project() or current_setting('role') = 'postern_admin')
  returning round
$$;

-- What a link in such a mail is about. No row when it was used, replaced or has expired.
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

-- The link confirms once. False when it was used or replaced, or has expired.
create function control.confirm_forward(hash bytea) returns boolean
language plpgsql security definer set search_path = pg_catalog as $$
declare
  project bigint := (select project_id from control.forward_confirmations where token_hash = hash);
  target text;
begin
  -- Locks the project, as every change of its routes does.
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

revoke execute on function control.copy_forward_consent(), control.keep_forward_confirmations(),
  control.request_forward_confirmation(bigint, text), control.forward_confirmation_of(bytea), control.confirm_forward(bytea)
  from public;
grant execute on function control.request_forward_confirmation(bigint, text) to postern_admin, postern_customer;
grant execute on function control.forward_confirmation_of(bytea), control.confirm_forward(bytea) to postern_customer;

-- What exists: in control, from where cells get their copy.
do $$
begin
  if exists (select from pg_catalog.pg_subscription
              where subdbid = (select oid from pg_catalog.pg_database where datname = current_database())) then
    return;
  end if;
  update control.domains set proved_name = name where status = 'verified';
  insert into control.name_tombstones (digest, was_verified)
    select control.name_digest(name), true from control.domains where status = 'verified'
    on conflict (digest) do nothing;
  insert into control.forward_confirmations (project_id, address)
    select distinct project_id, lower(forward_to) from control.routes where forward_to is not null;
end
$$;

-- Mails that a project forwarded in the period, of all that it had accepted.
alter table mail.usage add column forwarded bigint not null default 0 check (forwarded >= 0);

-- Why a mail for a route that forwards was taken and not forwarded. It is null with a message.
alter table mail.inbound
  add column not_forwarded text check (not_forwarded in ('dmarc')),
  drop constraint inbound_check2,
  add check ((action = 'forward') = (message_id is not null or not_forwarded is not null)),
  add check (message_id is null or not_forwarded is null);
