-- Reads all states for a check.
SELECT s.*, NOT EXISTS (SELECT 1 FROM agui_threads AS t WHERE t.number = s.thread) AS lacks_thread FROM agui_states AS s
