-- Deletes the logs of runs, and their input.
-- $1 numbers of the runs
WITH log AS (UPDATE agui_runs SET has_log = FALSE WHERE number = ANY($1::bigint[]) AND has_log RETURNING number),
deleted AS (DELETE FROM agui_events USING log WHERE run = log.number),
starts AS (DELETE FROM agui_run_starts USING log WHERE run = log.number)
SELECT COUNT(*) FROM log
