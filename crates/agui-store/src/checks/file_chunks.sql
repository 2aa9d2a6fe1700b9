-- Reads the bytes of all files for a check.
SELECT c.*, NOT EXISTS (SELECT 1 FROM agui_files AS f WHERE f.number = c.file) AS lacks_file FROM agui_file_chunks AS c
