-- Notes that a thread uses files of its owner. The rows are locked in the order of their numbers.
-- $1 the thread, $2 ids of files
WITH found AS (
    SELECT f.number FROM agui_threads AS t JOIN agui_files AS f ON f.owner = t.owner
    WHERE t.number = $1 AND f.id = ANY($2::text[]) AND f.stored ORDER BY f.number FOR UPDATE OF f
), kept AS (
    UPDATE agui_files AS f SET unused_since = NULL FROM found WHERE f.number = found.number AND f.unused_since IS NOT NULL
)
INSERT INTO agui_file_uses (thread, file) SELECT $1, number FROM found ON CONFLICT DO NOTHING
