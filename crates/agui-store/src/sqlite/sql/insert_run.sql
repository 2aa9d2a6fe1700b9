-- Stores a run. A parameter that is not bound is NULL.
INSERT INTO agui_runs (number, thread, id, agent, detached, status, delivered, head, first_run, state, interrupts,
    answered, started_at, ended_at, events, usage, failure, has_log)
VALUES (:run, :thread, :id, :agent, :detached, :status, :delivered, :head, :first_run, :state, :interrupts, :answered,
    :started_at, :ended_at, :events, :usage, :failure, 0)
