-- Reads words of the index with the texts that they are of: a title, or a message as JSON.
-- $1 and $2 thread and message of the last row before them
SELECT w.thread, w.message, w.words::text, CASE w.message WHEN 0 THEN t.title ELSE m.body END
FROM (SELECT * FROM agui_words WHERE (thread, message) > ($1, $2) ORDER BY thread, message LIMIT 50) AS w
LEFT JOIN agui_threads AS t ON t.number = w.thread
LEFT JOIN agui_messages AS m ON m.thread = w.thread AND m.number = w.message
ORDER BY w.thread, w.message
