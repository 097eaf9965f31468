#!/bin/sh
# Run once by the PostgreSQL image, for a new cluster. Creates the database, the login of the application, which has no
# privileges until `postern migrate` makes it a member of the roles, and the read-only login of the signer.
set -eu
password_in() { sed --regexp-extended 's|^postgres://[^:]+:([^@]+)@.*$|\1|' "/run/secrets/$1"; }
psql --set ON_ERROR_STOP=1 --set app="$(password_in database-url)" --set signer="$(password_in signer-database-url)" \
  --username postgres <<'SQL'
create role postern login noinherit password :'app';
create role postern_readonly nologin;
create role postern_signer login noinherit password :'signer' in role postern_readonly;
create database postern encoding 'UTF8' template template0;
SQL
