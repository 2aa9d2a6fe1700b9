-- Changes a thread, unless it has another version, or would move its head while a run is running.
UPDATE agui_threads SET version = version + 1,
    title = CASE WHEN :sets_title THEN :title ELSE title END,
    archived = COALESCE(:archived, archived),
    metadata = CASE WHEN :sets_metadata THEN :metadata ELSE metadata END,
    head = COALESCE(:head, head),
    state = CASE WHEN :head IS NULL THEN state ELSE :state END,
    interrupts = CASE WHEN :head IS NULL THEN interrupts ELSE :interrupts END
WHERE number = :thread AND version = :version AND (:head IS NULL OR holder IS NULL)
