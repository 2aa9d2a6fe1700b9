-- Changes a thread. Returns no row, and writes nothing, if it has another version, or if its head is to move while a run is
-- running.
-- $1 UpdateColumns as JSON
WITH new AS (
    SELECT * FROM json_to_record($1::json) AS new (number bigint, version bigint, sets_title boolean, title text,
        title_words text, archived boolean, sets_metadata boolean, metadata text, head bigint, state bigint,
        interrupts text)
), thread AS (
    UPDATE agui_threads AS t SET version = t.version + 1,
        title = CASE WHEN new.sets_title THEN new.title ELSE t.title END,
        archived = COALESCE(new.archived, t.archived),
        metadata = CASE WHEN new.sets_metadata THEN new.metadata ELSE t.metadata END,
        head = COALESCE(new.head, t.head),
        state = CASE WHEN new.head IS NULL THEN t.state ELSE new.state END,
        interrupts = CASE WHEN new.head IS NULL THEN t.interrupts ELSE new.interrupts END
    FROM new
    WHERE t.number = new.number AND t.version = new.version AND (new.head IS NULL OR t.holder IS NULL)
    RETURNING t.number, t.owner
), words AS (
    INSERT INTO agui_words (thread, message, words)
    SELECT thread.number, 0, replace(new.title_words, '@', agui_owner_word(thread.owner))::tsvector
    FROM new, thread WHERE new.title_words IS NOT NULL
    ON CONFLICT (thread, message) DO UPDATE SET words = excluded.words
), removed AS (
    DELETE FROM agui_words AS w USING new, thread
    WHERE w.thread = thread.number AND w.message = 0 AND new.sets_title AND new.title_words IS NULL
)
SELECT number FROM thread
