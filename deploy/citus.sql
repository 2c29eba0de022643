-- The tables spread over the nodes of a Citus cluster, by the session's id. Run once, as hansard_owner, after `hansard migrate` and before
-- the first server. NOT RUN by this project's tests: no Citus was at hand. See docs/deployment.md for what each query does there.

\set ON_ERROR_STOP on
SET search_path TO hansard, public;

SELECT create_distributed_table('session', 'id');
SELECT create_distributed_table('event', 'session_id', colocate_with => 'session');
SELECT create_distributed_table('damaged', 'session_id', colocate_with => 'session');
SELECT create_distributed_table('blob', 'session_id', colocate_with => 'session');
SELECT create_distributed_table('note', 'session_id', colocate_with => 'session');
SELECT create_distributed_table('command', 'session_id', colocate_with => 'session');
SELECT create_distributed_table('deleted', 'session_id', colocate_with => 'session');
SELECT create_reference_table('writer');        -- a few rows, on every node: who lives is asked together with the session
