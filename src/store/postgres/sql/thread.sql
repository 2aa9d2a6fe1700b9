-- Reads a thread with its state.
-- $1 owner, $2 id
SELECT t.*, s.body AS state_body FROM agui_threads AS t
LEFT JOIN agui_states AS s ON s.thread = t.number AND s.number = t.state
WHERE t.owner = $1 AND t.id = $2
