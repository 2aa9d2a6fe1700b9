-- Reads messages of a thread backwards: the message :newest, its parent, the parent of that one, and so on.
WITH RECURSIVE branch (number, parent, id, run, body, feedback, depth) AS (
    SELECT number, parent, id, run, body, feedback, 1 FROM agui_messages WHERE thread = :thread AND number = :newest
    UNION ALL
    SELECT m.number, m.parent, m.id, m.run, m.body, m.feedback, branch.depth + 1
    FROM branch JOIN agui_messages AS m ON m.thread = :thread AND m.number = branch.parent
    WHERE branch.depth < :limit AND m.number < branch.number)
SELECT :thread AS thread, b.number, b.parent, b.id, b.run, COALESCE(r.delivered, 1) AS delivered, b.body, b.feedback
FROM branch AS b LEFT JOIN agui_runs AS r ON r.number = b.run ORDER BY b.number DESC
