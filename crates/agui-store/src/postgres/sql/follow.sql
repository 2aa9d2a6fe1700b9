-- Notes for a minute that the running runs of threads are followed. Waits for the appends to their logs that have begun, so a
-- later read has those, and all others see the note. Threads are locked in the order of their numbers, as in `append.sql`.
-- $1 threads
WITH followed AS (
    SELECT number FROM agui_threads WHERE number = ANY($1::bigint[]) AND holder IS NOT NULL
        AND COALESCE(followed_until, '-infinity') < now() + interval '40 s'
    ORDER BY number FOR NO KEY UPDATE
)
UPDATE agui_threads AS t SET followed_until = now() + interval '60 s' FROM followed WHERE t.number = followed.number
