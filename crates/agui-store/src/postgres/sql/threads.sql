-- Lists the threads of an owner, those with the newest run first. Goes from one thread to the next older one by the index:
-- with `ORDER BY … LIMIT $3` alone, the generic plan reads and sorts all threads, 60 ms for 100,000 instead of 2 ms.
-- $1 owner, $2 run after those of the threads, $3 maximum number of threads, $4 archived or NULL, $5 agent or NULL
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
SELECT * FROM (SELECT * FROM newest LIMIT $3) AS page ORDER BY run DESC
