-- The large tables in 16 parts, by a hash of the session's id. Run once, as hansard_owner, after `hansard migrate` and while no server runs:
--
--   psql -f deploy/partition.sql postgresql://hansard_owner@host/database
--
-- Every statement of a server names one session, so it touches one part. What is in the tables is copied; a part can be vacuumed, dumped and
-- rebuilt alone, and put on a disk of its own (ALTER TABLE event_7 SET TABLESPACE …). `session` stays whole: it has one row for each session.

\set ON_ERROR_STOP on
\if :{?schema}
\else
    \set schema hansard
\endif

BEGIN;
SELECT set_config('search_path', :'schema' || ', public', true);

DO $$
DECLARE
    one text;
    part integer;
    key text;
    index text;
    indexes text[];
BEGIN
    FOREACH one IN ARRAY ARRAY['event', 'blob', 'damaged', 'note'] LOOP
        CONTINUE WHEN to_regclass(one) IS NULL;
        SELECT pg_get_constraintdef(oid) INTO STRICT key FROM pg_constraint WHERE conrelid = one::regclass AND contype = 'p';
        indexes := ARRAY(SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = one::regclass AND NOT indisprimary);
        EXECUTE format('ALTER TABLE %I RENAME TO %I', one, one || '_whole');
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL EXCLUDING INDEXES) PARTITION BY HASH (session_id)', one, one || '_whole');
        FOR part IN 0..15 LOOP
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 16, REMAINDER %s)', one || '_' || part, one, part);
        END LOOP;
        EXECUTE format('INSERT INTO %I SELECT * FROM %I', one, one || '_whole');
        EXECUTE format('DROP TABLE %I', one || '_whole');
        EXECUTE format('ALTER TABLE %I ADD %s', one, key);
        FOREACH index IN ARRAY indexes LOOP
            EXECUTE index;
        END LOOP;
    END LOOP;
END $$;

COMMIT;
