-- Lists the threads of an owner, those with the newest run first.
SELECT * FROM agui_threads
WHERE owner = :owner AND run < :after AND archived = COALESCE(:archived, archived)
    AND agent = COALESCE(:agent, agent)
ORDER BY run DESC LIMIT :limit
