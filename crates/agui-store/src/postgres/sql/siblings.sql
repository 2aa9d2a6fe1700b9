-- Reads the children of messages, the newest ones first. The first condition selects those that begin a branch, by their
-- index.
-- $1 thread, $2 numbers of the parents, $3 maximum number of children
SELECT number, parent, id FROM agui_messages
WHERE thread = $1 AND parent <> number - 1 AND parent = ANY($2::bigint[])
UNION ALL
SELECT m.number, m.parent, m.id FROM unnest($2::bigint[]) AS p (number)
JOIN agui_messages AS m ON m.thread = $1 AND m.number = p.number + 1 AND m.parent = p.number
ORDER BY number DESC LIMIT $3
