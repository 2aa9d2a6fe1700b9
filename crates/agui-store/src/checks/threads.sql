-- Reads all threads for a check. Unlinked ones are being deleted.
SELECT t.*,
    t.head <> 0 AND NOT EXISTS (SELECT 1 FROM agui_messages AS m WHERE m.thread = t.number AND m.number = t.head)
        AS lacks_head,
    t.state IS NOT NULL AND NOT EXISTS (SELECT 1 FROM agui_states AS s WHERE s.thread = t.number AND s.number = t.state)
        AS lacks_state,
    NOT EXISTS (SELECT 1 FROM agui_runs AS r WHERE r.number = t.run) AS lacks_run
FROM agui_threads AS t WHERE t.owner <> ''
