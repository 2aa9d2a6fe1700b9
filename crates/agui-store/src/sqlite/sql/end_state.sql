-- Reads the end of an ended run, with its state: of the newest attempt with an id, or of the last run that ended on the branch
-- of a message :head. The other one is NULL.
WITH RECURSIVE branch (number) AS (
    SELECT :head WHERE :head IS NOT NULL
    UNION ALL
    SELECT m.parent FROM branch JOIN agui_messages AS m ON m.thread = :thread AND m.number = branch.number
    WHERE m.parent < m.number)
SELECT r.id, r.head, r.state, s.body AS state_body, r.interrupts,
    CASE WHEN NOT EXISTS (SELECT 1 FROM agui_runs AS later
        WHERE later.thread = r.thread AND later.first_run = r.first_run AND later.number > r.number) THEN r.first_run END AS first_run
FROM (
    SELECT * FROM agui_runs
    WHERE thread = :thread AND ended_at IS NOT NULL AND (id = :id OR head IN (SELECT number FROM branch))
    ORDER BY CASE WHEN :id IS NULL THEN head END DESC, number DESC LIMIT 1) AS r
LEFT JOIN agui_states AS s ON s.thread = r.thread AND s.number = r.state
