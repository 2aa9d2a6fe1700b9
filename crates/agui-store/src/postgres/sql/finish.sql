-- Ends a run. Returns no row, and writes nothing, if its lease was lost.
-- $1 FinishColumns as JSON
WITH new AS (
    SELECT * FROM json_to_record($1::json) AS new (thread bigint, run bigint, holder text, ended_at bigint, status text,
        delivered boolean, events bigint, usage text, failure text, end_reason text, has_unsafe_calls boolean,
        base bigint, messages json, updated json, state text, interrupts text, bytes bigint, last_events json)
), message AS (
    SELECT message.* FROM new, json_to_recordset(new.messages)
        AS message (number bigint, id text, role text, run bigint, body text, words text)
), changed AS (
    SELECT changed.* FROM new, json_to_recordset(new.updated) AS changed (number bigint, body text, words text)
), last_events AS (
    SELECT batch.* FROM new, json_to_record(new.last_events) AS batch (first bigint, last bigint, body text, times text)
    WHERE batch.body IS NOT NULL
), size AS (
    SELECT (SELECT COUNT(*) FROM message) AS count, new.bytes + (
        SELECT COALESCE(SUM(octet_length(changed.body) - octet_length(m.body)), 0)
        FROM changed JOIN agui_messages AS m ON m.thread = new.thread AND m.number = changed.number
    )::bigint AS bytes
    FROM new
), thread AS (
    UPDATE agui_threads AS t SET holder = NULL, lease_until = NULL, cancel = FALSE,
        head = CASE size.count WHEN 0 THEN new.base ELSE t.messages + size.count END,
        state = CASE WHEN new.state IS NULL THEN t.state ELSE 2 * new.run + 1 END,
        interrupts = new.interrupts, messages = t.messages + size.count, bytes = t.bytes + size.bytes,
        version = t.version + 1, updated_at = new.ended_at
    FROM new, size
    WHERE t.number = new.thread AND t.run = new.run AND t.holder = new.holder
    RETURNING t.number, t.owner, t.run, t.version, t.messages, t.messages - size.count AS before, t.head, t.state, t.bytes
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
), state AS (
    INSERT INTO agui_states (thread, number, body)
    SELECT thread.number, thread.state, new.state FROM new, thread WHERE new.state IS NOT NULL
), events AS (
    INSERT INTO agui_events (run, last, first, body, times)
    SELECT thread.run, last_events.last, last_events.first, last_events.body, last_events.times FROM thread, last_events
    WHERE NOT EXISTS (SELECT 1 FROM agui_events AS e WHERE e.run = thread.run AND e.last >= last_events.last)
    ON CONFLICT DO NOTHING
), ended AS (
    UPDATE agui_runs AS r SET status = new.status, delivered = new.delivered, head = thread.head, state = thread.state,
        interrupts = new.interrupts, ended_at = new.ended_at, events = new.events, usage = new.usage,
        failure = new.failure, end_reason = new.end_reason, has_unsafe_calls = new.has_unsafe_calls,
        has_log = r.detached AND (EXISTS (SELECT 1 FROM last_events)
            OR EXISTS (SELECT 1 FROM agui_events AS e WHERE e.run = r.number)
            OR EXISTS (SELECT 1 FROM agui_run_starts AS s WHERE s.run = r.number))
    FROM new, thread WHERE r.number = thread.run
)
SELECT version, messages, state, bytes FROM thread
