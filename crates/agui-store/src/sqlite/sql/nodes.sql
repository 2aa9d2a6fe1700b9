-- Reads the messages of all branches of a thread.
SELECT m.thread, m.number, m.parent, m.id, m.run, COALESCE(r.delivered, 1) AS delivered, m.body, m.feedback
FROM agui_messages AS m LEFT JOIN agui_runs AS r ON r.number = m.run
WHERE m.thread = ? ORDER BY m.number
