-- Ends a run, after its last events were stored.
UPDATE agui_runs SET status = :status, delivered = :delivered, head = :head, state = :state, interrupts = :interrupts,
    ended_at = :ended_at, events = :events, usage = :usage, failure = :failure,
    end_reason = :end_reason, has_unsafe_calls = :has_unsafe_calls,
    has_log = detached AND (EXISTS (SELECT 1 FROM agui_log_ends WHERE run = :run)
        OR EXISTS (SELECT 1 FROM agui_run_starts WHERE run = :run))
WHERE number = :run
