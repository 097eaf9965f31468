-- Schemas, the clock, the shard function, identifiers, row-level security, append-only tables and text search.

create schema control;
create schema mail;

comment on schema postern is 'Shared by both sides: the clock, the shard function, row-level security, append-only tables, the list of migrations.';
comment on schema control is 'Configuration: people, projects and their resources, audit. Small, global, read everywhere.';
comment on schema mail is 'Mail: messages, dispatch, events, usage. Large, one per cell. Never written in the same transaction as control.';

grant usage on schema postern, control to postern_admin, postern_customer, postern_mail, postern_identity, postern_readonly;
grant select on postern.migrations to postern_admin, postern_customer, postern_mail, postern_identity, postern_readonly;
grant usage on schema mail to postern_admin, postern_customer, postern_mail, postern_readonly;

-- The clock for every lease, due time and timestamp. It is the database's clock, so a jump in a worker's own clock does not
-- cause duplicate or late claims. Tests move it with `alter database … set postern.clock_offset`.
create function postern.now() returns timestamptz
language sql stable parallel safe
return pg_catalog.now()
  + coalesce(nullif(current_setting('postern.clock_offset', true), ''), '0')::interval;

-- The shard of a project, one of 1,024: the top ten bits of a multiplicative (Fibonacci) hash. Plain arithmetic instead of
-- hashint8, because the value is stored and must not change with a PostgreSQL release.
create function postern.shard_of(project_id bigint) returns smallint
language sql immutable strict parallel safe
return ((((project_id & 2147483647) * 2654435761) >> 22) & 1023)::smallint;

-- RFC 9562 §5.7: a UUID version 7 whose first 48 bits contain `at` in milliseconds. Message ids use the database's time.
-- Tables that grow indefinitely are partitioned by ranges of these ids.
create function postern.uuid7(at timestamptz) returns uuid
language sql volatile parallel safe
return encode(
  set_bit(set_bit(
    overlay(uuid_send(gen_random_uuid())
            placing substring(int8send((extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1),
  'hex')::uuid;

-- The smallest id at a point in time: the lower bound of a partition.
create function postern.uuid7_floor(at timestamptz) returns uuid
language sql immutable strict parallel safe
return (encode(substring(int8send((extract(epoch from at) * 1000)::bigint) from 3), 'hex')
        || '00000000000000000000')::uuid;

-- The key of an advisory lock on one of a project's domain names. A transaction that accepts a project's outgoing mail for
-- the name holds the lock in shared mode.
create function postern.acceptance_lock(project_id bigint, name text) returns bigint
language sql immutable strict parallel safe
return hashtextextended('postern acceptance ' || name, project_id);

-- The project of a customer's transaction. Null, which matches no row, if the setting is not set. After a transaction
-- that set it, PostgreSQL resets the setting to '' instead of null, hence nullif.
create function postern.current_project() returns bigint
language sql stable parallel safe
return nullif(current_setting('postern.project_id', true), '')::bigint;

-- The domain to which the API key in a customer's transaction is bound, or null if the caller is not bound to a domain.
create function postern.current_domain() returns bigint
language sql stable parallel safe
return nullif(current_setting('postern.domain_id', true), '')::bigint;

-- Row-level security for a table whose rows belong to projects: a second line of defense behind scoped queries. FORCE
-- applies it to the table owner as well, so the owner needs BYPASSRLS. One policy per role: with a single `role = admin OR
-- project = …` policy, PostgreSQL does not use the index for text search.
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

-- Append-only tables, such as audit rows and their checkpoints.
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

-- For substring search. The extension is trusted: every role that can create schemas in this database can create it. The
-- operator may have installed it in another schema, so the schema is looked up below.
create extension if not exists pg_trgm with schema postern;

-- fastupdate = off: otherwise every search would read the list of pending entries, which can grow to 4 MB.
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

-- The running processes. Each writes its row every 15 seconds to its home database (the control database or a cell), and
-- deletes it when it stops. A process that was last seen more than a minute ago does not run any more, or cannot reach the
-- database (core/processes).
create table postern.processes (
  id uuid primary key,
  kind text not null check (kind in ('api', 'worker', 'intake', 'all')),
  host text not null,
  version text not null,
  cell text,
  started_at timestamptz not null default postern.now(),
  seen_at timestamptz not null default postern.now()
);
grant select, insert, update, delete on postern.processes to postern_mail;
grant select on postern.processes to postern_admin, postern_readonly;

-- PostgreSQL grants EXECUTE on new procedures to everyone. The application's roles must not have it.
revoke execute on all procedures in schema postern from public;
