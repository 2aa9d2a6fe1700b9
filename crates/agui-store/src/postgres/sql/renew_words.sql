-- Replaces words of the index that are still the same.
-- $1 and $2 threads and messages, $3 their words, $4 their new words as tsvectors
UPDATE agui_words AS w SET words = replace(new.words, '@', agui_owner_word(t.owner))::tsvector
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS new (thread, message, older, words)
JOIN agui_threads AS t ON t.number = new.thread AND t.owner IS NOT NULL
WHERE w.thread = new.thread AND w.message = new.message AND w.words = new.older::tsvector
RETURNING w.message
