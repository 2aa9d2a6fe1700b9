-- Creates a thread and begins its first run. Returns no row, and writes nothing, if the thread exists.
-- $1 owner, $2 id, $3 agent, $4 run id, $5 detached, $6 holder, $7 end of the lease, $8 now,
-- $9 interrupts, $10 answered, $11 state, $12 bytes,
-- $13 ids, $14 roles and $15 bodies of the messages, $16 title, $17 words of the messages, $18 words of the title, $19 request
WITH run AS (
    SELECT nextval('agui_run_number') AS number, cardinality($13::text[]) AS count
), thread AS (
    INSERT INTO agui_threads (owner, id, agent, head, state, interrupts, messages, bytes, version, run, run_id, holder,
        lease_until, cancel, created_at, updated_at, title, archived)
    SELECT $1, $2, $3, run.count, CASE WHEN $11::text IS NOT NULL THEN 2 * run.number END, $9, run.count, $12, 1,
        run.number, $4, $6, $7, FALSE, $8, $8, $16, FALSE
    FROM run
    ON CONFLICT (owner, id) DO NOTHING
    RETURNING number, owner, run, messages, head, state
), messages AS (
    INSERT INTO agui_messages (thread, number, parent, id, role, body)
    SELECT thread.number, new.position, new.position - 1, new.id, new.role, new.body
    FROM thread, unnest($13::text[], $14::text[], $15::text[]) WITH ORDINALITY AS new (id, role, body, position)
), words AS (
    INSERT INTO agui_words (thread, message, words)
    SELECT thread.number, new.position - 1, replace(new.words, '@', agui_owner_word(thread.owner))::tsvector
    FROM thread, unnest(array_prepend($18::text, $17::text[])) WITH ORDINALITY AS new (words, position)
    WHERE new.words IS NOT NULL
), state AS (
    INSERT INTO agui_states (thread, number, body)
    SELECT thread.number, thread.state, $11 FROM thread WHERE thread.state IS NOT NULL
), start AS (
    INSERT INTO agui_run_starts (run, head, state, request)
    SELECT thread.run, thread.head, thread.state, $19 FROM thread WHERE $19::text IS NOT NULL
), begun AS (
    INSERT INTO agui_runs (number, thread, id, agent, detached, status, delivered, head, state, answered, started_at,
        events, has_log)
    SELECT thread.run, thread.number, $4, $3, $5, 'running', FALSE, thread.head, thread.state, $10, $8, 0, FALSE
    FROM thread
)
SELECT number, run, messages, state, FALSE AS replaced FROM thread
