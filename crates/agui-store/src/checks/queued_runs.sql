-- Reads all queued runs for a check.
SELECT q.number, q.thread, q.id AS run_id, q.asked, q.agent, q.holder, q.takeovers, q.queued_at, q.request,
    COALESCE(t.owner, '') AS owner, COALESCE(t.id, '') AS id, t.number IS NULL AS lacks_thread
FROM agui_queued_runs AS q LEFT JOIN agui_threads AS t ON t.number = q.thread
