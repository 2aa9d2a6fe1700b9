-- Ends a run. Returns no row, and writes nothing, if its lease was lost.
-- $1 thread, $2 run, $3 holder, $4 time, $5 status, $6 delivered, $7 events, $8 usage, $9 failure, $10 interrupts,
-- $11 state, $12 bytes of the new messages and the state,
-- $13 ids, $14 roles, $15 bodies and $16 runs of the new messages, $17 base,
-- $18 numbers and $19 bodies of the updated messages, $20 number of the first and $21 of the last of the last events,
-- $22 their lines, $23 words of the new and $24 of the updated messages, $25 times of the last events
WITH size AS (
    SELECT cardinality($13::text[]) AS count, (
        SELECT COALESCE(SUM(octet_length(new.body) - octet_length(m.body)), 0)
        FROM unnest($18::bigint[], $19::text[]) AS new (number, body)
        JOIN agui_messages AS m ON m.thread = $1 AND m.number = new.number
    )::bigint + $12::bigint AS bytes
), thread AS (
    UPDATE agui_threads AS t SET holder = NULL, lease_until = NULL, cancel = FALSE,
        head = CASE size.count WHEN 0 THEN $17 ELSE t.messages + size.count END,
        state = CASE WHEN $11::text IS NULL THEN t.state ELSE 2 * $2 + 1 END,
        interrupts = $10, messages = t.messages + size.count, bytes = t.bytes + size.bytes, version = t.version + 1,
        updated_at = $4
    FROM size
    WHERE t.number = $1 AND t.run = $2 AND t.holder = $3
    RETURNING t.number, t.owner, t.run, t.version, t.messages, t.messages - size.count AS before, t.head, t.state, t.bytes
), updated AS (
    UPDATE agui_messages AS m SET body = new.body
    FROM thread, unnest($18::bigint[], $19::text[]) AS new (number, body)
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
        SELECT thread.before + new.position, new.words FROM unnest($23::text[]) WITH ORDINALITY AS new (words, position)
        WHERE new.words IS NOT NULL
        UNION ALL
        SELECT new.number, COALESCE(new.words, '') FROM unnest($18::bigint[], $24::text[]) AS new (number, words)
    ) AS changed (message, words)
    ON CONFLICT (thread, message) DO UPDATE SET words = excluded.words
), state AS (
    INSERT INTO agui_states (thread, number, body)
    SELECT thread.number, thread.state, $11 FROM thread WHERE $11::text IS NOT NULL
), events AS (
    INSERT INTO agui_events (run, last, first, body, times)
    SELECT thread.run, $21, $20, $22, $25 FROM thread
    WHERE $22::text IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM agui_events AS e WHERE e.run = thread.run AND e.last >= $21)
    ON CONFLICT DO NOTHING
), ended AS (
    UPDATE agui_runs AS r SET status = $5, delivered = $6, head = thread.head, state = thread.state, interrupts = $10,
        ended_at = $4, events = $7, usage = $8, failure = $9,
        has_log = r.detached AND ($22::text IS NOT NULL OR EXISTS (SELECT 1 FROM agui_events AS e WHERE e.run = r.number)
            OR EXISTS (SELECT 1 FROM agui_run_starts AS s WHERE s.run = r.number))
    FROM thread WHERE r.number = thread.run
)
SELECT version, messages, state, bytes FROM thread
