-- Reads all runs for a check.
SELECT r.*, CAST(0 AS bigint) AS logged, NOT EXISTS (SELECT 1 FROM agui_threads AS t WHERE t.number = r.thread) AS lacks_thread
FROM agui_runs AS r
