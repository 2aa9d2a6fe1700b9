-- Reads messages of a thread backwards: a message, its parent, the parent of that one, and so on.
-- $1 thread, $2 number of the newest message, $3 maximum number of messages
WITH RECURSIVE branch (number, parent, id, run, body, feedback, depth) AS (
    SELECT number, parent, id, run, body, feedback, 1::bigint FROM agui_messages WHERE thread = $1 AND number = $2
    UNION ALL
    SELECT m.number, m.parent, m.id, m.run, m.body, m.feedback, branch.depth + 1
    FROM branch JOIN agui_messages AS m ON m.thread = $1 AND m.number = branch.parent
    WHERE branch.depth < $3 AND m.number < branch.number)
SELECT $1 AS thread, b.number, b.parent, b.id, b.run, COALESCE(r.delivered, TRUE) AS delivered, b.body, b.feedback
FROM branch AS b LEFT JOIN agui_runs AS r ON r.number = b.run ORDER BY b.number DESC
