#!/bin/sh
# The first start of the database in deploy/compose.yaml: its roles, with the passwords of the secrets.
set -eu
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --no-psqlrc --quiet \
    -v owner_password="$(cat /run/secrets/owner_password)" \
    -v server_password="$(cat /run/secrets/server_password)" \
    -v reader_password="$(cat /run/secrets/reader_password)" \
    -f /roles.sql
