-- What a project stores in a day is limited, and the body of a mail is deleted soon after the mail has been handed over.

-- Bytes that a project stored in the period: by sending mail, and by mail that came in for it.
alter table mail.usage
  add column stored_bytes bigint not null default 0 check (stored_bytes >= 0),
  add column inbound_bytes bigint not null default 0 check (inbound_bytes >= 0);

-- Bodies of mail that still waits when the partition of its day in mail.bodies is dropped: scheduled, deferred or held.
-- A partition per day in which there is a body to keep, by the day until which it is kept.
create table mail.waiting_bodies (
  message_id uuid not null,
  project_id bigint not null,
  shard smallint not null generated always as (postern.shard_of(project_id)) stored,
  format text not null check (format in ('json', 'mime')),
  content bytea compression lz4 not null,
  kept_until date not null,
  primary key (shard, message_id, kept_until)
) partition by range (kept_until);

call postern.protect('mail.waiting_bodies');
grant select on mail.waiting_bodies to postern_mail;

-- One step of deleting the bodies of mail that has been handed over, or given up. Takes the oldest partition of bodies
-- whose day ended more than `kept_hours` ago. Bodies of mail that still waits are moved out of it, a bounded number in
-- each step; a partition without such bodies is dropped. No row of mail.dispatch is ever added for an old message, so a
-- partition that nothing waits in stays so. Returns no row when there is nothing to do.
create function mail.drop_bodies(kept_hours integer, rows_at_most integer, bytes_at_most bigint)
returns table (moved integer, dropped text)
language plpgsql security definer set search_path = pg_catalog as $$
declare
  today date := (postern.now() at time zone 'UTC')::date;
  part record;
  waiting text;
  shards smallint[];
  ids uuid[];
  days date[];
  day date;
begin
  -- Written so that a null is refused.
  if (kept_hours between 24 and 87840 and rows_at_most > 0 and bytes_at_most > 0) is not true then
    raise exception 'bodies are kept for 24 to 87840 hours, and a step has a size';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('mail.keep_partitions', 0));
  select parent.relname as parent, child.relname, to_date(right(child.relname, 8), 'YYYYMMDD') as day into part
    from pg_inherits
    join pg_class as child on child.oid = inhrelid
    join pg_class as parent on parent.oid = inhparent
   where inhparent in ('mail.bodies'::regclass, 'mail.waiting_bodies'::regclass) and child.relname ~ '_[0-9]{8}$'
     and (to_date(right(child.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC'
           + make_interval(hours => kept_hours) <= postern.now()
   order by to_date(right(child.relname, 8), 'YYYYMMDD'), child.relname
   limit 1;
  if not found then return; end if;

  -- By the key of mail.dispatch, shard by shard: a day may have millions of bodies, of which few still wait.
  waiting := case part.parent
    when 'bodies' then format(
      'select dispatch.shard, dispatch.message_id, dispatch.due_at
         from generate_series(0, 1023) as shards (no)
         join mail.dispatch as dispatch
           on dispatch.shard = shards.no and dispatch.message_id >= %L and dispatch.message_id < %L',
      postern.uuid7_floor(part.day::timestamp at time zone 'UTC'),
      postern.uuid7_floor((part.day + 1)::timestamp at time zone 'UTC'))
    else format(
      'select dispatch.shard, dispatch.message_id, dispatch.due_at
         from mail.%I join mail.dispatch as dispatch using (shard, message_id)', part.relname)
    end;
  execute format(
    'select array_agg(shard), array_agg(message_id), array_agg(kept_until)
       from (select *, sum(bytes) over (order by shard, message_id) - bytes as bytes_before
               from (select bodies.shard, bodies.message_id, octet_length(bodies.content) as bytes,
                            greatest((waiting.due_at at time zone ''UTC'')::date, %L) as kept_until
                       from (select shard, message_id, max(due_at) as due_at from (%s) as dispatched
                              group by shard, message_id) as waiting
                       join mail.%I as bodies using (shard, message_id)
                      limit %s) as step) as sized
      where bytes_before < %s', today, waiting, part.relname, rows_at_most, bytes_at_most)
    into shards, ids, days;
  if ids is null then
    execute format('drop table mail.%I', part.relname);
    moved := 0;
    dropped := part.relname;
    return next;
    return;
  end if;

  for day in select distinct unnest(days) loop
    continue when to_regclass(format('mail.%I', 'waiting_bodies_' || to_char(day, 'YYYYMMDD'))) is not null;
    execute format(
      'create table mail.%I partition of mail.waiting_bodies for values from (%L) to (%L)',
      'waiting_bodies_' || to_char(day, 'YYYYMMDD'), day, day + 1);
  end loop;
  execute format(
    'with gone as (
       delete from mail.%I as bodies using unnest($1, $2, $3) as wanted (shard, message_id, until)
        where bodies.shard = wanted.shard and bodies.message_id = wanted.message_id
       returning bodies.message_id, bodies.project_id, bodies.format, bodies.content, wanted.until)
     insert into mail.waiting_bodies (message_id, project_id, format, content, kept_until)
     select * from gone', part.relname)
    using shards, ids, days;
  moved := cardinality(ids);
  return next;
end
$$;
revoke execute on function mail.drop_bodies from public;
grant execute on function mail.drop_bodies to postern_mail;
