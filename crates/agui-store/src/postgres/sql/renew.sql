-- Extends the leases of a holder. Threads are locked in the order of their numbers, as in `append.sql`, so that the two
-- cannot deadlock.
-- $1 holder, $2 end of the leases
WITH held AS (
    SELECT number FROM agui_threads WHERE lease_until IS NOT NULL AND holder = $1 ORDER BY number FOR NO KEY UPDATE
)
UPDATE agui_threads AS t SET lease_until = $2 FROM held WHERE t.number = held.number
RETURNING t.owner, t.id, t.run_id, t.number, t.run, t.holder
