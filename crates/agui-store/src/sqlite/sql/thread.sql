-- Reads a thread, with its state if ?3 is true.
SELECT t.*, s.body AS state_body, r.first_run FROM agui_threads AS t
LEFT JOIN agui_states AS s ON ?3 AND s.thread = t.number AND s.number = t.state
LEFT JOIN agui_runs AS r ON r.number = t.run AND r.head = t.head
WHERE t.owner = ?1 AND t.id = ?2
