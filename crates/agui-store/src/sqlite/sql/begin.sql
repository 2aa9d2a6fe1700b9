-- Begins a run on a thread.
UPDATE agui_threads SET agent = :agent, head = :head, state = :state, interrupts = :interrupts, messages = :messages,
    bytes = :bytes, version = version + 1, run = :run, run_id = :run_id, holder = :holder, updated_at = :now,
    title = COALESCE(title, :title)
WHERE number = :thread
