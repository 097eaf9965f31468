-- What control and mail tell each other of endpoints, besides what the two outboxes could hold already.

-- When the mail plane's word of an endpoint was read; what was read earlier does not replace it. By the clock itself,
-- which no test moves.
alter table control.endpoint_stats add column counted_at timestamptz not null default '-infinity';

-- Endpoints that were switched off without anybody asking for it, until the owner of their project was mailed.
create table control.endpoint_notices (
  endpoint_id bigint primary key,
  project_id bigint not null,
  created_at timestamptz not null default postern.now(),
  foreign key (project_id, endpoint_id) references control.endpoints (project_id, id) on delete cascade
);
create index on control.endpoint_notices (created_at);

call postern.protect('control.endpoint_notices');
grant select, insert, update, delete on control.endpoint_notices to postern_admin;
grant select on control.endpoint_notices to postern_readonly;

-- "Was a replay asked for that the mail plane has not heard of yet?"
create index on control.outbox (project_id) where topic = 'endpoint.replay';
grant select on control.outbox to postern_customer;
