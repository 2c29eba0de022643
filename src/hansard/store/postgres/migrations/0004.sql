-- Who watches the list of sessions reads what changed since the last look, by an index.

ALTER TABLE session ADD COLUMN changed timestamptz NOT NULL DEFAULT date_trunc('second', now());  -- to the second: most appends leave the index alone
CREATE INDEX session_changed ON session (changed);

CREATE TABLE deleted (                          -- sessions that were deleted, for who still lists them
    session_id text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, at)
);
CREATE INDEX deleted_at ON deleted (at);
