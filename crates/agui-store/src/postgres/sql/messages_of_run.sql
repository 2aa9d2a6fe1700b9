-- Reads the messages that a run made, the newest ones first.
-- $1 thread, $2 number of the newest message, $3 maximum number of messages, $4 run
SELECT m.thread, m.number, m.parent, m.id, m.run, r.delivered, m.body, m.feedback
FROM agui_messages AS m JOIN agui_runs AS r ON r.number = m.run
WHERE m.thread = $1 AND m.run = $4 AND m.number <= $2 ORDER BY m.number DESC LIMIT $3
