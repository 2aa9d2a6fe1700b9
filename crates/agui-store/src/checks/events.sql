-- Reads the logs of all runs for a check.
SELECT e.*, NOT EXISTS (SELECT 1 FROM agui_runs AS r WHERE r.number = e.run) AS lacks_run FROM agui_events AS e
