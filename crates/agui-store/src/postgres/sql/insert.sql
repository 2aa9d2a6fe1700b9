-- Creates a thread with its content but the words of its messages. Returns no row, and writes nothing, if the thread exists.
-- $1 ContentColumns as JSON
WITH new AS (
    SELECT * FROM json_to_record($1::json) AS new (owner text, id text, agent text, title text, title_words text,
        archived boolean, metadata text, head bigint, state bigint, interrupts text, bytes bigint, created_at bigint,
        updated_at bigint, messages json, states json, runs json)
), message AS (
    SELECT message.* FROM new, json_to_recordset(new.messages) AS message (number bigint, parent bigint, id text,
        role text, run bigint, body text, feedback text)
), run AS (
    SELECT nextval('agui_run_number') AS number, run.* FROM new, json_to_recordset(new.runs) AS run (position bigint,
        id text, attempt bigint, continues boolean, agent text, status text, delivered boolean, head bigint, state bigint,
        interrupts text, answered text, started_at bigint, ended_at bigint, events bigint, usage text, failure text,
        end_reason text, has_unsafe_calls boolean)
), first AS (
    -- The number of the first state. All numbers are smaller than those of later runs.
    SELECT 2 * MIN(number) AS state FROM run
), thread AS (
    INSERT INTO agui_threads (owner, id, agent, title, archived, metadata, head, state, interrupts, messages, bytes,
        version, run, run_id, cancel, created_at, updated_at)
    SELECT new.owner, new.id, new.agent, new.title, new.archived, new.metadata, new.head, first.state + new.state,
        new.interrupts, (SELECT COUNT(*) FROM message), new.bytes, 1, last.number, last.id, FALSE, new.created_at,
        new.updated_at
    FROM new, first, (SELECT run.number, run.id FROM run ORDER BY run.number DESC LIMIT 1) AS last
    ON CONFLICT (owner, id) DO NOTHING
    RETURNING number, owner
), messages AS (
    INSERT INTO agui_messages (thread, number, parent, id, role, run, body, feedback)
    SELECT thread.number, message.number, message.parent, message.id, message.role, run.number, message.body,
        message.feedback
    FROM thread, message LEFT JOIN run ON run.position = message.run
), title AS (
    INSERT INTO agui_words (thread, message, words)
    SELECT thread.number, 0, replace(new.title_words, '@', agui_owner_word(thread.owner))::tsvector
    FROM new, thread WHERE new.title_words IS NOT NULL
), states AS (
    INSERT INTO agui_states (thread, number, body)
    SELECT thread.number, first.state + state.position - 1, state.body
    FROM new, thread, first, json_array_elements_text(new.states) WITH ORDINALITY AS state (body, position)
), runs AS (
    INSERT INTO agui_runs (thread, number, id, attempt, continues, agent, detached, status, delivered, head, state,
        interrupts, answered, started_at, ended_at, events, usage, failure, end_reason, has_unsafe_calls, has_log)
    SELECT thread.number, run.number, run.id, run.attempt, run.continues, run.agent, FALSE, run.status, run.delivered,
        run.head, first.state + run.state, run.interrupts, run.answered, run.started_at, run.ended_at, run.events,
        run.usage, run.failure, run.end_reason, run.has_unsafe_calls, FALSE
    FROM thread, first, run
)
SELECT number FROM thread
