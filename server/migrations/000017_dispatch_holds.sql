-- The operator's brakes: no mail is claimed at all, or none of a provider. A project by itself is held by
-- control.queue_holds. In control, so that the audit row commits with it; the mail plane reads it when it claims.
create table control.dispatch_holds (
  scope text primary key check (scope in ('all', 'service', 'ses')),
  held_at timestamptz not null default postern.now()
);
grant select, insert, delete on control.dispatch_holds to postern_admin;
grant select on control.dispatch_holds to postern_mail, postern_readonly;
