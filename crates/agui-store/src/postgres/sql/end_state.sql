-- Reads the end of an ended run, with its state: of the newest attempt with an id, or of the last run that ended on the branch
-- of a message $3. The other one is NULL.
-- $1 thread, $2 id or NULL, $3 number of a message or NULL
WITH RECURSIVE branch (number) AS (
    SELECT $3::bigint WHERE $3::bigint IS NOT NULL
    UNION ALL
    SELECT m.parent FROM branch JOIN agui_messages AS m ON m.thread = $1 AND m.number = branch.number
    WHERE m.parent < m.number)
SELECT r.id, r.head, r.state, s.body AS state_body, r.interrupts,
    CASE WHEN NOT EXISTS (SELECT 1 FROM agui_runs AS later
        WHERE later.thread = r.thread AND later.first_run = r.first_run AND later.number > r.number) THEN r.first_run END AS first_run
FROM (
    SELECT * FROM agui_runs
    WHERE thread = $1 AND ended_at IS NOT NULL AND (id = $2 OR head IN (SELECT number FROM branch))
    ORDER BY CASE WHEN $2::text IS NULL THEN head END DESC, number DESC LIMIT 1) AS r
LEFT JOIN agui_states AS s ON s.thread = r.thread AND s.number = r.state
