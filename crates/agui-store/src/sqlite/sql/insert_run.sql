-- Stores a run: the next attempt of its id, unless :attempt is bound. Attempts with numbers outside the range are damaged. A
-- parameter that is not bound is NULL.
INSERT INTO agui_runs (number, thread, id, attempt, asked, continues, agent, detached, status, delivered, head, first_run,
    state, interrupts, answered, started_at, ended_at, events, usage, failure, end_reason, has_unsafe_calls, has_log)
VALUES (:run, :thread, :id, COALESCE(:attempt, 1 + (SELECT attempt FROM agui_runs
        WHERE thread = :thread AND id = :id AND attempt BETWEEN 1 AND 4294967294 ORDER BY attempt DESC LIMIT 1), 1),
    :asked, :continues, :agent, :detached, :status, :delivered, :head, :first_run, :state, :interrupts, :answered,
    :started_at, :ended_at, :events, :usage, :failure, :end_reason, COALESCE(:has_unsafe_calls, 0), 0)
