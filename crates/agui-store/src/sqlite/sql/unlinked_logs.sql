-- Finds logs that no read reaches any more. ?1 is not used.
SELECT e.run FROM agui_log_ends AS e LEFT JOIN agui_runs AS r ON r.number = e.run
LEFT JOIN agui_threads AS t ON t.number = r.thread
WHERE ?1 = 0 AND (t.number IS NULL OR t.owner = '' OR r.has_log = 0 AND r.ended_at IS NOT NULL) LIMIT ?2
