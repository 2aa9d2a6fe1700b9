-- Searches all threads of an owner by the index of words. `OFFSET 0` keeps the planner, which does not know `$6`, from
-- reading all threads.
-- $1 to $6 as in `search_newest.sql`
SELECT t.* FROM (
    SELECT DISTINCT thread FROM agui_words WHERE words @@ (SELECT replace($6, '@', agui_owner_word($1))::tsquery)
) AS found, LATERAL (SELECT * FROM agui_threads WHERE number = found.thread OFFSET 0) AS t
WHERE t.owner = $1 AND t.run < $2 AND ($4 IS NULL OR t.archived = $4) AND ($5 IS NULL OR t.agent = $5)
ORDER BY t.run DESC LIMIT $3
