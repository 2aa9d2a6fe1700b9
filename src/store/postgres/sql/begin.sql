-- Begins a run on an existing thread. Returns no row, and writes nothing, if the thread has another version, has a
-- running run, or would become too large.
-- $1 thread, $2 version, $3 agent, $4 run id, $5 detached, $6 holder, $7 end of the lease, $8 now,
-- $9 interrupts, $10 answered, $11 state, $12 bytes of the new messages and the state,
-- $13 ids, $14 roles, $15 bodies and $16 runs of the new messages, $17 base, $18 state number,
-- $19 numbers and $20 bodies of the updated messages, $21 maximum number of messages, $22 maximum bytes of the thread
-- without the updated messages, $23 title, $24 words of the new and $25 of the updated messages, $26 words of the title,
-- $27 request
WITH run AS (
    SELECT nextval('agui_run_number') AS number, cardinality($13::text[]) AS count, (
        SELECT COALESCE(SUM(octet_length(new.body) - octet_length(m.body)), 0)
        FROM unnest($19::bigint[], $20::text[]) AS new (number, body)
        JOIN agui_messages AS m ON m.thread = $1 AND m.number = new.number
    )::bigint + $12::bigint AS bytes
), thread AS (
    UPDATE agui_threads AS t SET agent = $3,
        head = CASE run.count WHEN 0 THEN $17 ELSE t.messages + run.count END,
        state = CASE WHEN $11::text IS NULL THEN $18 ELSE 2 * run.number END,
        interrupts = $9, messages = t.messages + run.count, bytes = t.bytes + run.bytes, version = t.version + 1,
        run = run.number, run_id = $4, holder = $6, lease_until = $7, cancel = FALSE, updated_at = $8,
        title = COALESCE(t.title, $23)
    FROM run
    WHERE t.number = $1 AND t.version = $2 AND t.holder IS NULL
        AND t.messages + run.count <= $21 AND t.bytes + $12 <= $22
    RETURNING t.number, t.owner, t.run, t.messages, t.messages - run.count AS before, t.head, t.state
), replaced AS (
    SELECT r.number FROM thread JOIN agui_runs AS r ON r.thread = thread.number AND r.id = $4
), log AS (
    DELETE FROM agui_events WHERE run IN (SELECT number FROM replaced)
), replaced_start AS (
    DELETE FROM agui_run_starts WHERE run IN (SELECT number FROM replaced)
), updated AS (
    UPDATE agui_messages AS m SET body = new.body
    FROM thread, unnest($19::bigint[], $20::text[]) AS new (number, body)
    WHERE m.thread = thread.number AND m.number = new.number
), messages AS (
    INSERT INTO agui_messages (thread, number, parent, id, role, run, body)
    SELECT thread.number, thread.before + new.position,
        CASE new.position WHEN 1 THEN $17 ELSE thread.before + new.position - 1 END, new.id, new.role, new.run, new.body
    FROM thread,
        unnest($13::text[], $14::text[], $15::text[], $16::bigint[])
        WITH ORDINALITY AS new (id, role, body, run, position)
), words AS (
    INSERT INTO agui_words (thread, message, words)
    SELECT thread.number, changed.message, replace(changed.words, '@', agui_owner_word(thread.owner))::tsvector
    FROM thread, LATERAL (
        SELECT thread.before + new.position, new.words FROM unnest($24::text[]) WITH ORDINALITY AS new (words, position)
        WHERE new.words IS NOT NULL
        UNION ALL
        SELECT new.number, COALESCE(new.words, '') FROM unnest($19::bigint[], $25::text[]) AS new (number, words)
    ) AS changed (message, words)
    ON CONFLICT (thread, message) DO UPDATE SET words = excluded.words
), title AS (
    INSERT INTO agui_words (thread, message, words)
    SELECT thread.number, 0, replace($26, '@', agui_owner_word(thread.owner))::tsvector FROM thread WHERE $26::text IS NOT NULL
    ON CONFLICT (thread, message) DO NOTHING
), state AS (
    INSERT INTO agui_states (thread, number, body)
    SELECT thread.number, thread.state, $11 FROM thread WHERE $11::text IS NOT NULL
), start AS (
    INSERT INTO agui_run_starts (run, head, state, request)
    SELECT thread.run, thread.head, thread.state, $27 FROM thread WHERE $27::text IS NOT NULL
), begun AS (
    INSERT INTO agui_runs (number, thread, id, agent, detached, status, delivered, head, state, answered, started_at,
        events, has_log)
    SELECT thread.run, thread.number, $4, $3, $5, 'running', FALSE, thread.head, thread.state, $10, $8, 0, FALSE
    FROM thread
    ON CONFLICT (thread, id) DO UPDATE SET number = excluded.number, agent = excluded.agent,
        detached = excluded.detached, status = excluded.status, delivered = excluded.delivered, head = excluded.head,
        state = excluded.state, interrupts = NULL, started_at = excluded.started_at,
        -- An answer stays given.
        answered = CASE WHEN agui_runs.answered IS NULL THEN excluded.answered
            WHEN excluded.answered IS NULL THEN agui_runs.answered
            ELSE (agui_runs.answered::jsonb || excluded.answered::jsonb)::text END,
        ended_at = NULL, events = 0, usage = NULL, failure = NULL, has_log = FALSE
)
SELECT number, run, messages, state, EXISTS (SELECT 1 FROM replaced) AS replaced FROM thread
