#!/bin/sh
# The PostgreSQL image runs this script once, for a new cluster. It creates the database, the application's login and the
# signer's read-only login. The application's login has no privileges until `postern migrate` makes it a member of the roles.
set -eu
password_in() { sed --regexp-extended 's|^postgres://[^:]+:([^@]+)@.*$|\1|' "/run/secrets/$1"; }
psql --set ON_ERROR_STOP=1 --set app="$(password_in database-url)" --set signer="$(password_in signer-database-url)" \
  --username postgres <<'SQL'
create role postern login noinherit password :'app';
create role postern_readonly nologin;
create role postern_signer login noinherit password :'signer' in role postern_readonly;
create database postern encoding 'UTF8' template template0;
SQL
