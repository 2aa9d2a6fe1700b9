-- Makes a running run a detached one. Returns no row, and writes nothing, if its lease was lost; else whether it is followed.
-- The thread is locked, as by an append, so that its run does not end meanwhile.
-- $1 thread, $2 run, $3 holder, $4 input of the run or NULL, $5 number of the first and $6 of the last event, $7 body, $8 times
WITH held AS (
    SELECT run, followed_until FROM agui_threads WHERE number = $1 AND run = $2 AND holder = $3 FOR SHARE
), promoted AS (
    UPDATE agui_runs AS r SET detached = TRUE FROM held WHERE r.number = held.run RETURNING r.number, r.head, r.state
), start AS (
    INSERT INTO agui_run_starts (run, head, state, request)
    SELECT number, head, state, $4 FROM promoted WHERE $4::text IS NOT NULL
    ON CONFLICT DO NOTHING
), written AS (
    INSERT INTO agui_events (run, last, first, body, times)
    SELECT run, $6::bigint, $5::bigint, $7::text, $8::text FROM held
    WHERE $6 >= $5 AND NOT EXISTS (SELECT 1 FROM agui_events AS e WHERE e.run = held.run AND e.last >= $6)
    ON CONFLICT DO NOTHING
)
SELECT COALESCE(followed_until > now(), FALSE) AS followed FROM held
