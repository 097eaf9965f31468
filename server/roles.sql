-- Postern's database roles. Roles belong to the whole PostgreSQL cluster, so this file is not a migration.
-- `postern migrate` runs it if a role is missing. If the migration login cannot create roles, a superuser
-- must run the file once.
--
--   postern_owner     owns every object; bypasses row-level security: migrations and dumps only
--   postern_admin     the administrative plane: every project
--   postern_customer  the customer plane: the one project named in the transaction
--   postern_mail      the mail plane: reads control, writes mail, every project
--   postern_identity  sign-in: people and their credentials, nothing that a project owns
--   postern_readonly  dashboards and support: reads, never a secret

do $$
declare
  wanted record;
begin
  for wanted in
    select * from (values
      ('postern_owner', 'nologin bypassrls'),
      ('postern_admin', 'nologin'),
      ('postern_customer', 'nologin'),
      ('postern_mail', 'nologin'),
      ('postern_identity', 'nologin'),
      ('postern_readonly', 'nologin')
    ) as role (name, attributes)
  loop
    if not exists (select from pg_catalog.pg_roles where rolname = wanted.name) then
      begin
        execute format('create role %I %s', wanted.name, wanted.attributes);
      exception
        -- Another database in this cluster was migrated at the same time.
        when duplicate_object or unique_violation then null;
      end;
    end if;
  end loop;
end
$$;
