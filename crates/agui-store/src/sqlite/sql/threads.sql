-- Lists the threads of an owner, those with the newest run first. A thread whose id is damaged cannot be named.
SELECT * FROM agui_threads
WHERE owner = :owner AND run < :after AND (:archived IS NULL OR archived = :archived)
    AND (:agent IS NULL OR agent = :agent) AND typeof(id) = 'text'
ORDER BY run DESC LIMIT :limit
