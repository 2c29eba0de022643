-- The log. Every table begins with the session's id, so that a cluster can spread them by it; nothing refers from one session to another.

CREATE TABLE session (
    id text COLLATE "C" PRIMARY KEY,
    log_id text NOT NULL,
    seq bigint NOT NULL,
    bytes bigint NOT NULL,                      -- as long as the log would be as a file
    damaged bigint NOT NULL DEFAULT 0,          -- so many lines are no records
    holder uuid,                                -- who writes it, or was killed while it did
    epoch bigint NOT NULL DEFAULT 1,            -- counts the writers; the fence
    copying boolean NOT NULL DEFAULT false,     -- the holder brings lines along from elsewhere and says nothing itself
    title text,
    agent text,
    format text,
    parent_session_id text,
    archived boolean NOT NULL DEFAULT false,
    created bigint,
    updated bigint NOT NULL,
    status text,
    state bytea NOT NULL                        -- the summary, for the next writer to go on from
) WITH (fillfactor = 70);                       -- it is updated with every append: room for that in the same page

CREATE TABLE event (
    session_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    start bigint NOT NULL,                      -- where the line would stand in a file
    time bigint NOT NULL,
    type text NOT NULL,
    id text COLLATE "C" NOT NULL,
    line bytea NOT NULL,                        -- as in a file, without the line end
    said text,                                  -- for searching, in small letters; only where something whole was said
    PRIMARY KEY (session_id, seq)
);
CREATE INDEX event_id ON event (session_id, id);

DO $$
DECLARE
    home text;
BEGIN
    BEGIN
        CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
    EXCEPTION WHEN insufficient_privilege OR invalid_schema_name THEN
        CREATE EXTENSION IF NOT EXISTS pg_trgm;
    END;
    SELECT nspname INTO home FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm';
    EXECUTE format('CREATE INDEX event_said ON event USING gin (said %I.gin_trgm_ops) WHERE said IS NOT NULL', home);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN
    RAISE NOTICE 'without pg_trgm a search reads all that was said';
END $$;

CREATE TABLE damaged (                          -- lines of a log from elsewhere that are no records there
    session_id text COLLATE "C" NOT NULL,
    after bigint NOT NULL,                      -- the record in front of it
    number bigint NOT NULL,                     -- counts those behind one record, from 1 on
    start bigint NOT NULL,
    reason text NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (session_id, after, number)
);

CREATE TABLE blob (
    session_id text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (session_id, sha256)
);
ALTER TABLE blob ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE note (                             -- what the log says too, only sooner; may be lost
    session_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (session_id, name)
);

CREATE TABLE writer (                           -- a process that writes; a cluster has this table on every node
    id uuid PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    until timestamptz NOT NULL                  -- renewed every few seconds, by the clock of the database
);
