#!/bin/sh
# Run once by the image of PostgreSQL, when the cluster is new: the login of the application, which is nobody until
# `postern migrate` has made it a member of the planes' roles, that of the signer, which only reads, and the database.
set -eu
password_in() { sed --regexp-extended 's|^postgres://[^:]+:([^@]+)@.*$|\1|' "/run/secrets/$1"; }
psql --set ON_ERROR_STOP=1 --set app="$(password_in database-url)" --set signer="$(password_in signer-database-url)" \
  --username postgres <<'SQL'
create role postern login noinherit password :'app';
create role postern_readonly nologin;
create role postern_signer login noinherit password :'signer' in role postern_readonly;
create database postern encoding 'UTF8' template template0;
SQL
