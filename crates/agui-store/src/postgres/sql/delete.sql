-- Deletes threads with all their rows. An earlier statement of the same transaction has locked the threads, so this one
-- sees all rows that others have written to them.
-- $1 numbers of threads
WITH deleted AS (
    DELETE FROM agui_threads WHERE number = ANY($1::bigint[]) RETURNING number
), runs AS (
    DELETE FROM agui_runs USING deleted WHERE thread = deleted.number RETURNING agui_runs.number
), events AS (
    DELETE FROM agui_events USING runs WHERE run = runs.number
), starts AS (
    DELETE FROM agui_run_starts USING runs WHERE run = runs.number
), queued AS (
    DELETE FROM agui_queued_runs USING deleted WHERE thread = deleted.number
), messages AS (
    DELETE FROM agui_messages USING deleted WHERE thread = deleted.number
), words AS (
    DELETE FROM agui_words USING deleted WHERE thread = deleted.number
), states AS (
    DELETE FROM agui_states USING deleted WHERE thread = deleted.number
), uses AS (
    DELETE FROM agui_file_uses USING deleted WHERE thread = deleted.number RETURNING file
), released AS (
    UPDATE agui_files SET unused_since = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    WHERE number IN (SELECT file FROM uses)
)
SELECT COUNT(*) FROM deleted
