-- Deletes files with their bytes.
-- $1 numbers of files
WITH deleted AS (
    DELETE FROM agui_files WHERE number = ANY($1::bigint[]) RETURNING number
), chunks AS (
    DELETE FROM agui_file_chunks USING deleted WHERE file = deleted.number
)
DELETE FROM agui_file_uses USING deleted WHERE file = deleted.number
