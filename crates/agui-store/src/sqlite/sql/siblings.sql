-- Reads the children of the messages in the list :parents, the newest ones first. The first condition selects those that
-- begin a branch, by their index.
SELECT number, parent, id FROM agui_messages
WHERE thread = :thread AND parent <> number - 1 AND parent IN (SELECT value FROM json_each(:parents))
UNION ALL
SELECT number, parent, id FROM agui_messages
WHERE thread = :thread AND parent = number - 1 AND number IN (SELECT value + 1 FROM json_each(:parents))
ORDER BY number DESC LIMIT :limit
