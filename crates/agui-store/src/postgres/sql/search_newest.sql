-- Searches the newest threads of an owner, one after the other, as `threads.sql` lists them. `OFFSET 0` keeps the planner
-- from the index of words.
-- $1 to $5 as in `threads.sql`, $6 words as a tsquery, $7 maximum number of threads to search
WITH RECURSIVE newest AS (
    (SELECT * FROM agui_threads
    WHERE owner = $1 AND run < $2 AND ($4 IS NULL OR archived = $4) AND ($5 IS NULL OR agent = $5)
    ORDER BY run DESC LIMIT 1)
    UNION ALL
    SELECT older.* FROM newest, LATERAL (
        SELECT * FROM agui_threads
        WHERE owner = $1 AND run < newest.run AND ($4 IS NULL OR archived = $4) AND ($5 IS NULL OR agent = $5)
        ORDER BY run DESC LIMIT 1) AS older
)
SELECT * FROM (
    SELECT t.* FROM (SELECT * FROM newest LIMIT $7) AS t
    WHERE EXISTS (
        SELECT 1 FROM (SELECT words FROM agui_words WHERE thread = t.number OFFSET 0) AS w
        WHERE w.words @@ (SELECT replace($6, '@', agui_owner_word($1))::tsquery))
    LIMIT $3
) AS page ORDER BY run DESC
