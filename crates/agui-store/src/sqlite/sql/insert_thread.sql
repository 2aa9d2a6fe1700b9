-- Creates a thread. A parameter that is not bound is NULL.
INSERT INTO agui_threads (number, owner, id, agent, title, archived, metadata, head, state, interrupts, indexed, messages,
    bytes, version, run, run_id, holder, created_at, updated_at)
VALUES (:thread, :owner, :id, :agent, :title, :archived, :metadata, :head, :state, :interrupts, 0, :messages, :bytes, 1,
    :run, :run_id, :holder, :created_at, :updated_at)
