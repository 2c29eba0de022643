-- Several servers on one store: what one of them wants of a session that another one writes.

CREATE TABLE command (
    session_id text COLLATE "C" NOT NULL,
    name bytea NOT NULL,                        -- the same name is the same command, from wherever it comes
    words bytea NOT NULL,
    sender uuid NOT NULL,                       -- who is told when there is an answer
    wanted timestamptz NOT NULL,                -- when somebody last waited for the answer: what nobody waits for is not done
    taken uuid,                                 -- the writer that does it
    answer bytea,
    PRIMARY KEY (session_id, name)
);

ALTER TABLE writer ADD COLUMN listens boolean NOT NULL DEFAULT false;   -- whether it does what others ask of its sessions

CREATE INDEX session_holder ON session (holder) WHERE holder IS NOT NULL;

-- Whether a writer lives. While the database was away nobody could say that it does: then all have the time of a lease to say it again.
CREATE FUNCTION lives(until timestamptz) RETURNS boolean LANGUAGE sql AS $$
    SELECT until IS NOT NULL AND (until > clock_timestamp() OR (
        until > pg_postmaster_start_time() - interval '1 hour' AND clock_timestamp() < pg_postmaster_start_time() + interval '8 seconds'))
$$;
