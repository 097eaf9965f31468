-- When control was last alive, for cells: one row, updated every few seconds by a worker at control and replicated with the
-- other published tables. Replication keeps the order of commits, so a cell that has this row has everything that control
-- committed before it. No row is inserted here: migrations also run in cells, where the first copy must find the table empty.
create table control.heartbeat (
  id smallint primary key default 1 check (id = 1),
  at timestamptz not null
);
grant select, insert, update on control.heartbeat to postern_admin;
grant select on control.heartbeat to postern_mail, postern_readonly;
