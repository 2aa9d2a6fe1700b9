-- Reads the messages of all branches of a thread.
-- $1 thread
SELECT m.thread, m.number, m.parent, m.id, m.run, COALESCE(r.delivered, TRUE) AS delivered, m.body, m.feedback
FROM agui_messages AS m LEFT JOIN agui_runs AS r ON r.number = m.run
WHERE m.thread = $1 ORDER BY m.number
