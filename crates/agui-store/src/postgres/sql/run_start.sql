-- Reads the input of a detached run.
-- $1 run
SELECT s.head, st.body AS state_body, s.request FROM agui_run_starts AS s JOIN agui_runs AS r ON r.number = s.run
LEFT JOIN agui_states AS st ON st.thread = r.thread AND st.number = s.state
WHERE s.run = $1
