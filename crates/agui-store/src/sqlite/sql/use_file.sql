-- Notes that a thread uses a file of its owner.
INSERT INTO agui_file_uses (thread, file)
SELECT t.number, f.number FROM agui_threads AS t JOIN agui_files AS f ON f.owner = t.owner
WHERE t.number = :thread AND f.id = :id AND f.stored = 1
ON CONFLICT DO NOTHING
