#!/bin/sh
# Run once by the image of PostgreSQL, when the cluster is new: the login of the application, which is nobody until
# `postern migrate` has made it a member of the planes' roles, and the database.
set -eu
password=$(sed --regexp-extended 's|^postgres://[^:]+:([^@]+)@.*$|\1|' /run/secrets/database-url)
psql --set ON_ERROR_STOP=1 --set password="$password" --username postgres <<'SQL'
create role postern login noinherit password :'password';
create database postern encoding 'UTF8' template template0;
SQL
