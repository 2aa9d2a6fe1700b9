-- Reads a page of a run's log, with the run. If there are no events, there is one row with NULLs.
-- $1 run, $2 number of the event before the page, $3 approximate size of the page in bytes
SELECT r.status, CASE r.status WHEN 'running'
        THEN COALESCE((SELECT MAX(last) FROM agui_events WHERE run = $1), 0) ELSE r.events END AS count,
    e.first, e.last, e.body, e.times
FROM agui_runs AS r LEFT JOIN (
    SELECT first, last, body, times, SUM(octet_length(body)) OVER (ORDER BY last) - octet_length(body) AS bytes_before
    FROM (SELECT * FROM agui_events WHERE run = $1 AND last > $2 ORDER BY last LIMIT 256) AS batches
) AS e ON e.bytes_before < $3
WHERE r.number = $1 ORDER BY e.last
