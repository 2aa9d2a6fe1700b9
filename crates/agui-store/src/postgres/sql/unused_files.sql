-- Deletes files that no thread uses, and interrupted uploads. Returns for each whether it was stored. The outer condition is checked
-- again after a lock was waited for: a run may have begun to use the file.
-- $1 since when a file is unused, $2 since when an upload lasts, $3 limit
WITH deleted AS (
    DELETE FROM agui_files AS f WHERE f.number IN (
        SELECT number FROM agui_files WHERE (stored AND unused_since < $1) OR (NOT stored AND unused_since < $2) LIMIT $3
    ) AND ((f.stored AND f.unused_since < $1) OR (NOT f.stored AND f.unused_since < $2))
    RETURNING f.number, f.stored
), chunks AS (
    DELETE FROM agui_file_chunks USING deleted WHERE file = deleted.number
)
SELECT stored FROM deleted
