-- Lists the threads of an owner that have the words :expression, those with the newest run first.
-- If there are many, only the :matching last created ones are considered.
WITH found (thread) AS (
    SELECT DISTINCT t.number FROM agui_words AS w CROSS JOIN agui_threads AS t ON t.number = w.rowid >> 24
    WHERE w.agui_words MATCH :expression AND t.owner = :owner AND t.run < :after
        AND (:archived IS NULL OR t.archived = :archived)
        AND (:agent IS NULL OR t.agent = :agent) AND typeof(t.id) = 'text'
    ORDER BY w.rowid DESC LIMIT :matching)
SELECT t.* FROM found JOIN agui_threads AS t ON t.number = found.thread
ORDER BY t.run DESC LIMIT :limit
