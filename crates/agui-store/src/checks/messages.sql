-- Reads all messages for a check.
SELECT m.*, TRUE AS delivered,
    NOT EXISTS (SELECT 1 FROM agui_threads AS t WHERE t.number = m.thread) AS lacks_thread,
    m.parent <> 0 AND NOT EXISTS (SELECT 1 FROM agui_messages AS p WHERE p.thread = m.thread AND p.number = m.parent)
        AS lacks_parent
FROM agui_messages AS m
