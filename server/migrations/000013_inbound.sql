-- Mail that comes in.
--
-- One row for each recipient that was accepted, and, where an endpoint is to have the mail, its octets, once for all
-- recipients of a mail. What happens to it is written in the same transaction: an event on its way to an endpoint, or a
-- message on its way out. A mail that is dropped leaves its row and nothing else. Nothing moves afterwards.

-- To whom mail for a name belongs: the project that has proved that it owns it, or else the only one that ever claimed
-- it (docs/decisions/0014-inbound-belongs-to.md). The number of its domain; 0 when several claim the name and none has
-- proved it; null when nobody does. Who has proved a name has proved those below it, too, whose mail a wildcard may bring
-- here: another project has them only with a proof of its own. It looks beyond the project of a customer's transaction, hence as the owner.
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
                      and count(*) = 1 then min(domains.id) else 0 end
       from control.domains as domains where domains.name = wanted having count(*) > 0))
$$;
revoke execute on function control.mail_holder(text) from public;
grant execute on function control.mail_holder(text) to postern_admin, postern_customer, postern_mail;
create index on control.domains (name);
create index on control.identities (name);

create table mail.inbound (
  id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  domain_id bigint not null,
  route_id bigint not null,
  action text not null check (action in ('endpoint', 'forward', 'drop')),
  endpoint_id bigint,
  -- With `forward`: the message that it became.
  message_id uuid,
  -- Empty: the null sender, of reports.
  envelope_from text not null,
  recipient text not null,
  from_header text not null,
  subject text not null,
  size_bytes integer not null check (size_bytes >= 0),
  authentication jsonb not null,
  remote_address inet not null,
  -- Where its octets are, if they are kept.
  body_id uuid,
  created_at timestamptz not null default postern.now(),
  primary key (shard, id),
  check ((action = 'endpoint') = (endpoint_id is not null)),
  check ((action = 'endpoint') = (body_id is not null)),
  check ((action = 'forward') = (message_id is not null))
) partition by range (id);
create index on mail.inbound (shard, project_id, id);

create table mail.inbound_bodies (
  id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  content bytea compression lz4 not null,
  primary key (shard, id)
) partition by range (id);

-- Of a message that came in and is sent on: {"envelope_from", "smtputf8", "is_sender_confirmed"}. It leaves as it came, with its sender
-- rewritten, and is not signed in the name of the domain. Null for all others.
alter table mail.messages add column forwarded jsonb;

call postern.protect('mail.inbound');
call postern.protect('mail.inbound_bodies');

grant select, insert, update, delete on mail.inbound, mail.inbound_bodies to postern_mail;
grant select on mail.inbound to postern_admin, postern_customer, postern_readonly;
grant select on mail.inbound_bodies to postern_admin;

create or replace function mail.cut_tables() returns table (name text, holds_mail boolean, longer_days integer)
language sql immutable set search_path = pg_catalog as $$
  values ('messages', true, 45), ('recipients', true, 45), ('bodies', true, 0), ('attempts', true, 0),
         ('events', false, 0), ('delivery_attempts', false, 0), ('inbound', false, 0), ('inbound_bodies', false, 0)
$$;

select mail.keep_partitions(14, 3660);
