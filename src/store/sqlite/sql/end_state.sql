-- Reads the end of an ended run, with its state. The run is found by its id, or by the last message of its branch; the other
-- one is NULL.
SELECT r.id, r.head, r.state, s.body AS state_body, r.interrupts FROM agui_runs AS r
LEFT JOIN agui_states AS s ON s.thread = r.thread AND s.number = r.state
WHERE r.thread = :thread AND (r.id = :id OR r.head = :head) AND r.ended_at IS NOT NULL
ORDER BY r.number DESC LIMIT 1
