-- Reads the newest run that answers a request, and that has a number above the known one.
-- $1 thread, $2 id, $3 digest of the request, $4 number of the known run
SELECT *, COALESCE((SELECT MAX(last) FROM agui_events WHERE run = number), 0) AS logged
FROM agui_runs WHERE thread = $1 AND (id = $2 OR alias = $2) AND asked = $3 AND number > $4 ORDER BY number DESC LIMIT 1
