-- Deletes threads with all that belongs to them. They were locked by an earlier statement of the same transaction: this
-- one then sees everything that others have written to them.
-- $1 numbers of threads
WITH gone AS (
    DELETE FROM agui_threads WHERE number = ANY($1::bigint[]) RETURNING number
), runs AS (
    DELETE FROM agui_runs USING gone WHERE thread = gone.number RETURNING agui_runs.number
), events AS (
    DELETE FROM agui_events USING runs WHERE run = runs.number
), messages AS (
    DELETE FROM agui_messages USING gone WHERE thread = gone.number
), states AS (
    DELETE FROM agui_states USING gone WHERE thread = gone.number
)
SELECT COUNT(*) FROM gone
