-- Schemas, the clock, the shard function, the two shields (row-level security, append-only) and text search.

create schema control;
create schema mail;

comment on schema postern is 'What both planes share: the clock, the shard function, the shields, the list of migrations.';
comment on schema control is 'Configuration: people, projects and what they own, audit. Small, global, read everywhere.';
comment on schema mail is 'Mail: messages, dispatch, events, usage. Large, one per cell. Never written in the same transaction as control.';

grant usage on schema postern, control to postern_admin, postern_customer, postern_mail, postern_identity, postern_readonly;
grant select on postern.migrations to postern_admin, postern_customer, postern_mail, postern_identity, postern_readonly;
grant usage on schema mail to postern_admin, postern_customer, postern_mail, postern_readonly;

-- The one clock of every lease, due time and timestamp. It is the database's, so a worker whose own clock
-- jumps neither claims twice nor claims late; tests move it with `alter database … set postern.clock_offset`.
create function postern.now() returns timestamptz
language sql stable parallel safe
return pg_catalog.now()
  + coalesce(nullif(current_setting('postern.clock_offset', true), ''), '0')::interval;

-- A project's home among 1,024 virtual shards: the top ten bits of a multiplicative (Fibonacci) hash.
-- Plain arithmetic, not hashint8: the value is stored and must never change with a PostgreSQL release.
create function postern.shard_of(project_id bigint) returns smallint
language sql immutable strict parallel safe
return ((((project_id & 2147483647) * 2654435761) >> 22) & 1023)::smallint;

-- RFC 9562 §5.7: a UUID of version 7, its first 48 bits the milliseconds of `at`. Ids of mail are made so, from the
-- database's time, and the tables that grow without end are cut by ranges of them.
create function postern.uuid7(at timestamptz) returns uuid
language sql volatile parallel safe
return encode(
  set_bit(set_bit(
    overlay(uuid_send(gen_random_uuid())
            placing substring(int8send((extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1),
  'hex')::uuid;

-- The smallest such id of a moment: where a range begins.
create function postern.uuid7_floor(at timestamptz) returns uuid
language sql immutable strict parallel safe
return (encode(substring(int8send((extract(epoch from at) * 1000)::bigint) from 3), 'hex')
        || '00000000000000000000')::uuid;

-- The advisory lock that whoever accepts mail of a project under a domain's name holds, shared, until it has committed.
create function postern.acceptance_lock(project_id bigint, name text) returns bigint
language sql immutable strict parallel safe
return hashtextextended('postern acceptance ' || name, project_id);

-- The project that a customer's transaction is about. Null (no row matches) when none was set: after a
-- transaction that set it, PostgreSQL leaves '' behind, not null, hence nullif.
create function postern.current_project() returns bigint
language sql stable parallel safe
return nullif(current_setting('postern.project_id', true), '')::bigint;

-- The second wall around what a project owns. FORCE holds for the owner too, who gets past it by
-- BYPASSRLS alone. One policy per role: a single `role = admin OR project = …` policy makes PostgreSQL
-- give up the index on text search.
create procedure postern.protect(owned regclass, project_column name default 'project_id')
language plpgsql as $$
begin
  execute format('alter table %s enable row level security, force row level security', owned);
  execute format('create policy admin on %s to postern_admin using (true)', owned);
  execute format('create policy mail on %s to postern_mail using (true)', owned);
  execute format('create policy readonly on %s for select to postern_readonly using (true)', owned);
  execute format('create policy customer on %s to postern_customer using (%I = postern.current_project())',
                 owned, project_column);
end
$$;

-- What is written once and never again: audit rows and their checkpoints.
create function postern.refuse_change() returns trigger
language plpgsql as $$
begin
  raise exception '% is append-only: % is refused', tg_table_name, lower(tg_op)
    using errcode = 'insufficient_privilege';
end
$$;

create procedure postern.make_append_only(log regclass)
language plpgsql as $$
begin
  execute format('create trigger append_only before update or delete or truncate on %s '
                 'for each statement execute function postern.refuse_change()', log);
end
$$;

-- To find a part of a name. Trusted: who may create schemas in this database may create it, too. One that the
-- operator has put elsewhere is as good, so its schema is looked up.
create extension if not exists pg_trgm with schema postern;

-- Without the list of pending entries: each search would have to read it, and it grows to 4 MB.
create procedure postern.make_searchable(searched regclass, variadic expressions text[])
language plpgsql as $$
declare
  opclass text := (select extnamespace::regnamespace || '.gin_trgm_ops'
                     from pg_catalog.pg_extension where extname = 'pg_trgm');
begin
  execute format('create index on %s using gin (%s) with (fastupdate = off)', searched,
                 (select string_agg(format('(%s) %s', expression, opclass), ', ') from unnest(expressions) as expression));
end
$$;

-- Not for the application's roles: PostgreSQL grants execution to everyone by default.
revoke execute on all procedures in schema postern from public;
