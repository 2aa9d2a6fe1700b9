-- Reads the newest run that answers a request, and that has a number above :known. If :known is an attempt, only those after
-- it are searched.
SELECT *, COALESCE((SELECT last FROM agui_log_ends WHERE run = number), 0) AS logged
FROM agui_runs
WHERE thread = :thread AND (id = :id OR alias = :id) AND asked = :asked AND number > :known
    AND attempt > COALESCE((SELECT attempt FROM agui_runs WHERE number = :known AND thread = :thread AND id = :id), 0)
ORDER BY number DESC LIMIT 1
