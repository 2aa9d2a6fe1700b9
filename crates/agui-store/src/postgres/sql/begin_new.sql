-- Creates a thread and begins its first run. Returns no row, and writes nothing, if the thread exists.
-- $1 BeginColumns as JSON
WITH new AS (
    SELECT * FROM json_to_record($1::json) AS new (owner text, id text, agent text, run_id text, asked text,
        continues boolean, detached boolean, holder text, lease_until bigint, now bigint, title text,
        title_words text, messages json, state text, interrupts text, answered text, request text, started text, bytes bigint)
), message AS (
    SELECT message.* FROM new, json_to_recordset(new.messages)
        AS message (number bigint, id text, role text, body text, words text)
), run AS (
    SELECT nextval('agui_run_number') AS number, (SELECT COUNT(*) FROM message) AS count
), thread AS (
    INSERT INTO agui_threads (owner, id, agent, head, state, interrupts, messages, bytes, version, run, run_id, holder,
        lease_until, cancel, created_at, updated_at, title, archived)
    SELECT new.owner, new.id, new.agent, run.count, CASE WHEN new.state IS NOT NULL THEN 2 * run.number END,
        new.interrupts, run.count, new.bytes, 1, run.number, new.run_id, new.holder, new.lease_until, FALSE, new.now,
        new.now, new.title, FALSE
    FROM new, run
    ON CONFLICT (owner, id) DO NOTHING
    RETURNING number, owner, run, messages, head, state
), messages AS (
    INSERT INTO agui_messages (thread, number, parent, id, role, body)
    SELECT thread.number, message.number, message.number - 1, message.id, message.role, message.body
    FROM thread, message
), words AS (
    INSERT INTO agui_words (thread, message, words)
    SELECT thread.number, text.message, replace(text.words, '@', agui_owner_word(thread.owner))::tsvector
    FROM thread, (
        SELECT 0, new.title_words FROM new UNION ALL SELECT message.number, message.words FROM message
    ) AS text (message, words)
    WHERE text.words IS NOT NULL
), state AS (
    INSERT INTO agui_states (thread, number, body)
    SELECT thread.number, thread.state, new.state FROM new, thread WHERE new.state IS NOT NULL
), start AS (
    INSERT INTO agui_run_starts (run, head, state, request)
    SELECT thread.run, thread.head, thread.state, new.request FROM new, thread WHERE new.request IS NOT NULL
), started AS (
    INSERT INTO agui_events (run, last, first, body, times)
    SELECT thread.run, 1, 1, new.started, '0' FROM new, thread WHERE new.started IS NOT NULL
), begun AS (
    INSERT INTO agui_runs (number, thread, id, attempt, asked, continues, agent, detached, status, delivered, head,
        first_run, state, answered, started_at, events, has_log)
    SELECT thread.run, thread.number, new.run_id, 1, new.asked, new.continues, new.agent, new.detached,
        'running', FALSE, thread.head, thread.run, thread.state, new.answered, new.now, 0, FALSE
    FROM new, thread
)
SELECT number, run, messages, state FROM thread
