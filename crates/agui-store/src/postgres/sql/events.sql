-- Reads the next page of the log of each of these runs, with the run. A run without further events has one row, with NULLs.
-- The number of events of a running run takes as long as the rest of the statement.
-- $1 runs, $2 for each the number of the event before the page, $3 approximate size of each page in bytes,
-- $4 whether to read the number of events of a running run
SELECT r.number, r.status, CASE WHEN r.status <> 'running' THEN r.events
        WHEN $4 THEN COALESCE((SELECT MAX(last) FROM agui_events WHERE run = r.number), 0) ELSE 0 END AS count,
    e.first, e.last, e.body, e.times
FROM unnest($1::bigint[], $2::bigint[]) AS asked (run, after) JOIN agui_runs AS r ON r.number = asked.run
LEFT JOIN LATERAL (
    SELECT first, last, body, times,
        SUM(octet_length(body)) OVER (ORDER BY last ROWS UNBOUNDED PRECEDING) - octet_length(body) AS bytes_before
    FROM (SELECT * FROM agui_events WHERE run = asked.run AND last > asked.after ORDER BY last LIMIT 256) AS batches
) AS e ON e.bytes_before < $3
ORDER BY r.number, e.last
