-- Adds the difference between the new length of a message and its stored one to the bytes of its thread.
UPDATE agui_threads SET bytes = bytes + :length
    - (SELECT length(CAST(body AS BLOB)) FROM agui_messages WHERE thread = :thread AND number = :number)
WHERE number = :thread
