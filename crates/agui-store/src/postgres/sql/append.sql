-- Appends batches of events to the logs of runs whose leases are valid. Returns the positions of those batches, from 1, and
-- whether their runs are followed.
-- Threads are locked in the order of their numbers, as by the renewal of leases, so that the two cannot deadlock.
-- $1 threads, $2 runs, $3 holders, $4 numbers of the first and $5 of the last events, $6 bodies, $7 times
WITH held AS (
    SELECT batch.*, t.followed_until FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[],
        $7::text[]) WITH ORDINALITY AS batch (thread, run, holder, first, last, body, times, position)
    JOIN agui_threads AS t ON t.number = batch.thread AND t.run = batch.run AND t.holder = batch.holder
    ORDER BY t.number FOR SHARE OF t
), written AS (
    INSERT INTO agui_events (run, last, first, body, times)
    SELECT held.run, held.last, held.first, held.body, held.times FROM held
    WHERE held.last >= held.first
        AND NOT EXISTS (SELECT 1 FROM agui_events AS e WHERE e.run = held.run AND e.last >= held.last)
    ON CONFLICT DO NOTHING
)
SELECT position, COALESCE(followed_until > now(), FALSE) AS followed FROM held
