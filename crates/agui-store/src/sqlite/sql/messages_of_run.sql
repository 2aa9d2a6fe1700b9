-- Reads the messages that a run made, the newest ones first.
SELECT m.thread, m.number, m.parent, m.id, m.run, r.delivered, m.body, m.feedback
FROM agui_messages AS m JOIN agui_runs AS r ON r.number = m.run
WHERE m.thread = :thread AND m.run = :run AND m.number <= :newest ORDER BY m.number DESC LIMIT :limit
