-- Begins a run on an existing thread. Returns no row, and writes nothing, if the thread has another version, has a
-- running run, or would become too large. A damaged version counts as 0.
-- $1 BeginColumns as JSON
WITH new AS (
    SELECT * FROM json_to_record($1::json) AS new (number bigint, version bigint, agent text, run_id text,
        detached boolean, holder text, lease_until bigint, now bigint, title text, title_words text, base bigint,
        messages json, updated json, state text, state_number bigint, first_run bigint, interrupts text, answered text, request text, started text,
        bytes bigint, updated_bytes bigint, max_messages numeric, max_bytes numeric)
), message AS (
    SELECT message.* FROM new, json_to_recordset(new.messages)
        AS message (number bigint, id text, role text, run bigint, body text, words text)
), changed AS (
    SELECT changed.* FROM new, json_to_recordset(new.updated) AS changed (number bigint, body text, words text)
), run AS (
    SELECT nextval('agui_run_number') AS number, (SELECT COUNT(*) FROM message) AS count, new.bytes + (
        SELECT COALESCE(SUM(octet_length(changed.body) - octet_length(m.body)), 0)
        FROM changed JOIN agui_messages AS m ON m.thread = new.number AND m.number = changed.number
    )::bigint AS bytes
    FROM new
), thread AS (
    UPDATE agui_threads AS t SET agent = new.agent,
        head = CASE run.count WHEN 0 THEN new.base ELSE t.messages + run.count END,
        state = CASE WHEN new.state IS NULL THEN new.state_number ELSE 2 * run.number END,
        interrupts = new.interrupts, messages = t.messages + run.count, bytes = t.bytes + run.bytes,
        version = new.version + 1, run = run.number, run_id = new.run_id, holder = new.holder,
        lease_until = new.lease_until, cancel = FALSE, updated_at = new.now, title = COALESCE(t.title, new.title)
    FROM new, run
    WHERE t.number = new.number AND t.holder IS NULL
        AND new.version = CASE WHEN t.version BETWEEN 0 AND 1099511627776 THEN t.version ELSE 0 END
        AND t.messages + run.count <= new.max_messages AND t.bytes + new.bytes + new.updated_bytes <= new.max_bytes
    RETURNING t.number, t.owner, t.run, t.messages, t.messages - run.count AS before, t.head, t.state
), replaced AS (
    SELECT r.number FROM new, thread JOIN agui_runs AS r ON r.thread = thread.number WHERE r.id = new.run_id
), log AS (
    DELETE FROM agui_events WHERE run IN (SELECT number FROM replaced)
), replaced_start AS (
    DELETE FROM agui_run_starts WHERE run IN (SELECT number FROM replaced)
), updated AS (
    UPDATE agui_messages AS m SET body = changed.body FROM thread, changed
    WHERE m.thread = thread.number AND m.number = changed.number
), messages AS (
    INSERT INTO agui_messages (thread, number, parent, id, role, run, body)
    SELECT thread.number, thread.before + message.number,
        CASE message.number WHEN 1 THEN new.base ELSE thread.before + message.number - 1 END,
        message.id, message.role, message.run, message.body
    FROM new, thread, message
), words AS (
    INSERT INTO agui_words (thread, message, words)
    SELECT thread.number, text.message, replace(text.words, '@', agui_owner_word(thread.owner))::tsvector
    FROM thread, LATERAL (
        SELECT thread.before + message.number, message.words FROM message WHERE message.words IS NOT NULL
        UNION ALL
        SELECT changed.number, COALESCE(changed.words, '') FROM changed
    ) AS text (message, words)
    ON CONFLICT (thread, message) DO UPDATE SET words = excluded.words
), title AS (
    INSERT INTO agui_words (thread, message, words)
    SELECT thread.number, 0, replace(new.title_words, '@', agui_owner_word(thread.owner))::tsvector
    FROM new, thread WHERE new.title_words IS NOT NULL
    ON CONFLICT (thread, message) DO NOTHING
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
    INSERT INTO agui_runs (number, thread, id, agent, detached, status, delivered, head, first_run, state, answered,
        started_at, events, has_log)
    SELECT thread.run, thread.number, new.run_id, new.agent, new.detached, 'running', FALSE, thread.head,
        COALESCE(new.first_run, thread.run), thread.state, new.answered, new.now, 0, FALSE
    FROM new, thread
    ON CONFLICT (thread, id) DO UPDATE SET number = excluded.number, agent = excluded.agent,
        detached = excluded.detached, status = excluded.status, delivered = excluded.delivered, head = excluded.head,
        first_run = excluded.first_run, state = excluded.state, interrupts = NULL, started_at = excluded.started_at,
        -- A reply stays when its run is replaced.
        answered = CASE WHEN agui_runs.answered IS NULL THEN excluded.answered
            WHEN excluded.answered IS NULL THEN agui_runs.answered
            ELSE (agui_runs.answered::jsonb || excluded.answered::jsonb)::text END,
        ended_at = NULL, events = 0, usage = NULL, failure = NULL, takeovers = 0, has_log = FALSE
)
SELECT number, run, messages, state, EXISTS (SELECT 1 FROM replaced) AS replaced FROM thread
