-- Begins a run on an existing thread. Returns no row, and writes nothing, if the thread has another version, has a
-- running run, has a run that answers the request, or would become too large, or if the queued run is gone or not of the
-- process that has the turn. A damaged version counts as 0. Attempts with
-- numbers outside the range are damaged.
-- $1 BeginColumns as JSON
WITH new AS (
    SELECT * FROM json_to_record($1::json) AS new (number bigint, version bigint, agent text, run_id text,
        asked text, known bigint, queued bigint, continues boolean, detached boolean, holder text, lease_until bigint, now bigint,
        title text, title_words text, base bigint, messages json, updated json, state text, state_number bigint,
        first_run bigint, interrupts text, answered text, request text, started text, bytes bigint,
        updated_bytes bigint, max_messages numeric, max_bytes numeric)
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
        AND NOT EXISTS (SELECT 1 FROM agui_runs AS r WHERE r.thread = new.number AND r.id = new.run_id
            AND r.asked = new.asked AND r.number > new.known)
        AND NOT EXISTS (SELECT 1 FROM agui_runs AS r WHERE r.thread = new.number AND r.alias = new.run_id
            AND r.asked = new.asked AND r.number > new.known)
        AND t.messages + run.count <= new.max_messages AND t.bytes + new.bytes + new.updated_bytes <= new.max_bytes
        AND (new.queued IS NULL
            OR EXISTS (SELECT 1 FROM agui_queued_runs AS q WHERE q.number = new.queued)
            AND NOT EXISTS (SELECT 1 FROM agui_queued_runs AS q
                WHERE q.thread = new.number AND q.holder <> new.holder AND q.number < COALESCE((
                    SELECT MIN(own.number) FROM agui_queued_runs AS own
                    WHERE own.thread = new.number AND own.holder = new.holder), new.queued)))
    RETURNING t.number, t.owner, t.run, t.messages, t.messages - run.count AS before, t.head, t.state
), dequeued AS (
    DELETE FROM agui_queued_runs AS q USING new, thread WHERE q.number = new.queued
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
    INSERT INTO agui_runs (number, thread, id, attempt, asked, continues, agent, detached, status, delivered, head,
        first_run, state, answered, started_at, events, has_log)
    SELECT thread.run, thread.number, new.run_id, 1 + COALESCE((SELECT MAX(r.attempt) FROM agui_runs AS r
            WHERE r.thread = new.number AND r.id = new.run_id AND r.attempt BETWEEN 1 AND 4294967294), 0),
        new.asked, new.continues, new.agent, new.detached, 'running', FALSE, thread.head,
        COALESCE(new.first_run, thread.run), thread.state, new.answered, new.now, 0, FALSE
    FROM new, thread
)
SELECT number, run, messages, state FROM thread
