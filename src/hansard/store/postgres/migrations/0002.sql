-- What was said, for searching, and what it cost.

ALTER TABLE event ADD COLUMN said text;         -- in small letters; only where something whole was said
ALTER TABLE session ADD COLUMN usage jsonb;     -- tokens and money, as `hansard usage` counts them

DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX event_said ON event USING gin (said gin_trgm_ops) WHERE said IS NOT NULL;
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN
    RAISE NOTICE 'without pg_trgm a search reads all that was said';
END $$;

CREATE VIEW session_usage AS
    SELECT id AS session_id, title, agent,
           (usage->>'inputTokens')::bigint AS input_tokens,
           (usage->>'outputTokens')::bigint AS output_tokens,
           (usage->>'totalTokens')::bigint AS total_tokens,
           (usage->>'costUsd')::double precision AS cost_usd,
           usage
    FROM session;
