-- What a session used. A session that was there before gets it with the next thing it says of that.

ALTER TABLE session ADD COLUMN usage jsonb;     -- tokens and money, as `hansard export --to usage` counts them

CREATE VIEW session_usage AS
    SELECT id AS session_id, title, agent,
           (usage->>'inputTokens')::bigint AS input_tokens,
           (usage->>'outputTokens')::bigint AS output_tokens,
           (usage->>'totalTokens')::bigint AS total_tokens,
           (usage->>'costUsd')::double precision AS cost_usd,
           usage
    FROM session;
