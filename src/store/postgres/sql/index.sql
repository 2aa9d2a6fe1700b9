-- Adds messages to the index of words.
-- $1 number of the thread, $2 numbers of messages, $3 their words as tsvectors, NULL for those that a search does not look at
INSERT INTO agui_words (thread, message, words)
SELECT thread.number, text.message, replace(text.words, '@', agui_owner_word(thread.owner))::tsvector
FROM agui_threads AS thread, unnest($2::bigint[], $3::text[]) AS text (message, words)
WHERE thread.number = $1 AND text.words IS NOT NULL
