-- Whatever an operator types leads to a project, a domain, an address or a person: by a part of it, and by how it begins,
-- which is all that one or two characters can be looked up by. Names of projects have both already (000003), people the
-- first (000002). By code point, whatever the collation of the database, so that what begins alike stands together.
-- See docs/decisions/0009.

call postern.make_searchable('control.domains', 'name');
create index domains_by_name on control.domains ((name collate "C"), id);

call postern.make_searchable('control.routes', 'address');
create index routes_by_address on control.routes ((address collate "C"), id);

create index users_by_email on control.users ((email collate "C"), id);
create index users_by_name on control.users ((lower(name) collate "C"), id);
