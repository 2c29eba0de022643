-- The roles of a store, and nothing that they do not need. Run once, by somebody who may create roles, in the database of the store:
--
--   psql -v owner_password=… -v server_password=… -v reader_password=… -f deploy/roles.sql postgresql://postgres@host/database
--
-- hansard_owner   has the tables: `hansard migrate`, and nothing else, connects as it
-- hansard_server  reads and writes rows: `hansard serve`, `import`, `copy`, … connect as it; it cannot make, change or drop a table
-- hansard_reader  reads: reports, dashboards

\set ON_ERROR_STOP on
\if :{?schema}
\else
    \set schema hansard
\endif

BEGIN;

CREATE ROLE hansard_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE hansard_server LOGIN PASSWORD :'server_password';
CREATE ROLE hansard_reader LOGIN PASSWORD :'reader_password';

CREATE SCHEMA :"schema" AUTHORIZATION hansard_owner;
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;   -- for searching; without it a search reads everything

GRANT USAGE ON SCHEMA :"schema" TO hansard_server, hansard_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE hansard_owner IN SCHEMA :"schema" GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO hansard_server;
ALTER DEFAULT PRIVILEGES FOR ROLE hansard_owner IN SCHEMA :"schema" GRANT SELECT ON TABLES TO hansard_reader;

COMMIT;
