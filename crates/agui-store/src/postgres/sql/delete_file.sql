-- Deletes a file with its bytes unless threads use it. Returns their number, and whether the file is deleted; no row if there is no
-- such file.
-- $1 owner, $2 id, $3 whether it is deleted even if threads use it
WITH found AS (
    SELECT f.number, (SELECT COUNT(*) FROM agui_file_uses AS u WHERE u.file = f.number) AS uses FROM agui_files AS f
    WHERE f.owner = $1 AND f.id = $2 AND f.stored FOR UPDATE
), deleted AS (
    DELETE FROM agui_files AS f USING found WHERE f.number = found.number AND ($3 OR found.uses = 0) RETURNING f.number
), chunks AS (
    DELETE FROM agui_file_chunks USING deleted WHERE file = deleted.number
), uses AS (
    DELETE FROM agui_file_uses USING deleted WHERE file = deleted.number
)
SELECT found.uses, EXISTS (SELECT 1 FROM deleted) FROM found
