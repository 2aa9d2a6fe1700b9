-- Lists queued runs that were released, and those that could have begun for some time: the first ones of threads without a
-- running run.
-- $1 the time, $2 limit
SELECT q.number, q.thread, q.id AS run_id, q.asked, q.agent, q.holder, q.takeovers, q.queued_at, t.owner, t.id
FROM agui_queued_runs AS q JOIN agui_threads AS t ON t.number = q.thread
WHERE q.holder = '' OR (t.holder IS NULL AND t.updated_at < $1 AND q.held_at < $1
    AND NOT EXISTS (SELECT 1 FROM agui_queued_runs AS other WHERE other.thread = q.thread AND other.number < q.number))
ORDER BY q.number LIMIT $2
