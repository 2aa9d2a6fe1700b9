-- Ends the running run of a thread.
UPDATE agui_threads SET holder = NULL, head = :head, state = :state, interrupts = :interrupts, messages = :messages,
    bytes = :bytes, version = :version, updated_at = :ended_at
WHERE number = :thread
