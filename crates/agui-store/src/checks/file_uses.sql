-- Reads the uses of files by threads for a check.
SELECT u.*, NOT EXISTS (SELECT 1 FROM agui_files AS f WHERE f.number = u.file) AS lacks_file,
    NOT EXISTS (SELECT 1 FROM agui_threads AS t WHERE t.number = u.thread) AS lacks_thread
FROM agui_file_uses AS u
