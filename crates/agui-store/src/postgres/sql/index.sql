-- Adds messages that follow each other to the index of words.
-- $1 number of the thread, $2 number of the message before them, $3 their words as tsvectors, NULL for those that a search
-- does not look at
INSERT INTO agui_words (thread, message, words)
SELECT thread.number, $2 + text.position, replace(text.words, '@', agui_owner_word(thread.owner))::tsvector
FROM agui_threads AS thread, unnest($3::text[]) WITH ORDINALITY AS text (words, position)
WHERE thread.number = $1 AND text.words IS NOT NULL
