-- Reads the newest run of a thread, with the lease and the size of the thread.
-- $1 owner, $2 id
SELECT r.*, t.version, t.messages, t.bytes, t.holder, t.lease_until,
    COALESCE((SELECT MAX(last) FROM agui_events WHERE run = r.number), 0) AS logged
FROM agui_threads AS t JOIN agui_runs AS r ON r.number = t.run WHERE t.owner = $1 AND t.id = $2
