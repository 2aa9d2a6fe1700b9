-- Reads the input of all detached runs for a check.
SELECT s.*, CAST(NULL AS text) AS state_body, NOT EXISTS (SELECT 1 FROM agui_runs AS r WHERE r.number = s.run) AS lacks_run
FROM agui_run_starts AS s
