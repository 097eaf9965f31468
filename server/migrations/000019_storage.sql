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

-- Purged by age (core/outbox).
create index on mail.control_applied (applied_at);

-- One step of deleting the bodies of mail that has been handed over, or given up. Takes the oldest partition of bodies
-- whose day ended more than `kept_hours` ago, looks through the mail that still waits, by its key, and moves the bodies of
-- that mail out of the partition: up to `rows_at_most` mails and about `bytes_at_most` in a step. `after_*` is what the step
-- before returned, so that each step goes on where the one before ended. When all were looked through, the partition is
-- dropped: no row of mail.dispatch is ever added for an old message. Returns no row when there is nothing to do; `dropped`
-- is null when somebody reads the partition at this moment, and it has to wait.
create function mail.drop_bodies(
  kept_hours integer, rows_at_most integer, bytes_at_most bigint, after_part text, after_shard smallint, after_message uuid)
returns table (part text, moved integer, dropped boolean, last_shard smallint, last_message uuid)
language plpgsql security definer set search_path = pg_catalog as $$
declare
  today date := (postern.now() at time zone 'UTC')::date;
  is_waiting boolean;
  part_day date;
  first_id uuid;
  end_id uuid;
  shards smallint[] := '{}';
  ids uuid[] := '{}';
  dues timestamptz[] := '{}';
  found_ids uuid[];
  found_dues timestamptz[];
  seen integer;
  is_all boolean := true;
  moved_shards smallint[];
  moved_ids uuid[];
  days date[];
  day date;
begin
  -- Written so that a null is refused.
  if (kept_hours between 24 and 87840 and rows_at_most > 0 and bytes_at_most > 0) is not true then
    raise exception 'bodies are kept for 24 to 87840 hours, and a step has a size';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('mail.keep_partitions', 0));
  select child.relname, inhparent = 'mail.waiting_bodies'::regclass, to_date(right(child.relname, 8), 'YYYYMMDD')
    into part, is_waiting, part_day
    from pg_inherits
    join pg_class as child on child.oid = inhrelid
   where inhparent in ('mail.bodies'::regclass, 'mail.waiting_bodies'::regclass) and child.relname ~ '_[0-9]{8}$'
     and (to_date(right(child.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC'
           + make_interval(hours => kept_hours) <= postern.now()
   order by 3, 1
   limit 1;
  if not found then return; end if;
  if part is distinct from after_part then
    after_shard := 0;
    after_message := '00000000-0000-0000-0000-000000000000';
  end if;

  if is_waiting then
    execute format(
      'select array_agg(shard), array_agg(message_id), array_agg(due_at)
         from (select bodies.shard, bodies.message_id,
                      (select max(dispatch.due_at) from mail.dispatch as dispatch
                        where dispatch.shard = bodies.shard and dispatch.message_id = bodies.message_id) as due_at
                 from mail.%I as bodies
                where (bodies.shard, bodies.message_id) > ($1, $2)
                order by bodies.shard, bodies.message_id limit $3) as step', part)
      into shards, ids, dues using after_shard, after_message, rows_at_most;
    is_all := coalesce(cardinality(ids), 0) < rows_at_most;
  else
    -- Shard by shard, as the key of mail.dispatch is: a day may have millions of bodies, of which few still wait.
    first_id := postern.uuid7_floor(part_day::timestamp at time zone 'UTC');
    end_id := postern.uuid7_floor((part_day + 1)::timestamp at time zone 'UTC');
    for shard_no in after_shard..1023 loop
      if cardinality(ids) >= rows_at_most then
        is_all := false;
        exit;
      end if;
      select array_agg(step.message_id order by step.message_id), array_agg(step.due_at order by step.message_id)
        into found_ids, found_dues
        from (select dispatch.message_id, max(dispatch.due_at) as due_at
                from mail.dispatch as dispatch
               where dispatch.shard = shard_no and dispatch.message_id >= first_id and dispatch.message_id < end_id
                 and (shard_no > after_shard or dispatch.message_id > after_message)
               group by dispatch.message_id
               order by dispatch.message_id limit rows_at_most - cardinality(ids)) as step;
      continue when found_ids is null;
      shards := shards || array_fill(shard_no::smallint, array[cardinality(found_ids)]);
      ids := ids || found_ids;
      dues := dues || found_dues;
    end loop;
    -- A shard that was cut short may have more.
    is_all := is_all and cardinality(ids) < rows_at_most;
  end if;

  -- Those that wait and have their body here, as far as the bytes go; `seen` is where they end.
  execute format(
    'select array_agg(shard) filter (where is_moved), array_agg(id) filter (where is_moved),
            array_agg(greatest((due at time zone ''UTC'')::date, $5)) filter (where is_moved), max(place)
       from (select wanted.*, due is not null and bodies.message_id is not null as is_moved,
                    coalesce(sum(octet_length(bodies.content)) filter (where due is not null)
                               over (order by place rows between unbounded preceding and 1 preceding), 0) as bytes_before
               from unnest($1, $2, $3) with ordinality as wanted (shard, id, due, place)
               left join mail.%I as bodies on bodies.shard = wanted.shard and bodies.message_id = wanted.id) as step
      where bytes_before < $4', part)
    into moved_shards, moved_ids, days, seen using shards, ids, dues, bytes_at_most, today;
  moved := coalesce(cardinality(moved_ids), 0);
  if moved > 0 then
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
       select * from gone', part)
      using moved_shards, moved_ids, days;
  end if;

  dropped := false;
  if is_all and seen is not distinct from nullif(cardinality(ids), 0) then
    -- All who accept or claim mail would wait behind us while somebody reads this day.
    perform set_config('lock_timeout', '200ms', true);
    begin
      execute format('drop table mail.%I', part);
      dropped := true;
    exception when lock_not_available then
      dropped := null;
    end;
  end if;
  last_shard := shards[seen];
  last_message := ids[seen];
  return next;
end
$$;
revoke execute on function mail.drop_bodies from public;
grant execute on function mail.drop_bodies to postern_mail;
