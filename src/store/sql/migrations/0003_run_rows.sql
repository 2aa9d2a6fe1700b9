-- A run that lives in its response is named by its thread's row alone while it goes on, and recorded in agui_runs
-- when it has ended: one row less is written for it, and no row of agui_runs twice.

ALTER TABLE agui_threads ADD COLUMN run_number BIGINT NOT NULL DEFAULT 0;       -- of the last run
ALTER TABLE agui_threads ADD COLUMN run_started_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agui_threads ADD COLUMN run_recorded BIGINT NOT NULL DEFAULT 1;     -- whether agui_runs has it

UPDATE agui_threads SET run_started_at = updated_at, run_number = COALESCE((SELECT r.run_number FROM agui_runs AS r
    WHERE r.thread_number = agui_threads.thread_number AND r.run_key = agui_threads.run_key), 0);

-- Every run changes these indexes, at its beginning and at its end. Rows that are written at the same time are at
-- the end of them, and what orders rows of the same millisecond is not in them.
DROP INDEX agui_threads_of_owner;
DROP INDEX agui_threads_idle;
DROP INDEX agui_threads_leased;
CREATE INDEX agui_threads_of_owner ON agui_threads (owner_key, updated_at);
CREATE INDEX agui_threads_held ON agui_threads (holder, updated_at);
