-- The tables of agui-server, version 1. Times are milliseconds since 1970; JSON is text.
-- Numbers are given by the process that owns the file, in ascending order: rows that are written at the same time are
-- neighbours, so a transaction of many runs changes few pages.

CREATE TABLE agui_schema (version INTEGER NOT NULL);
INSERT INTO agui_schema (version) VALUES (1);

CREATE TABLE agui_threads (
    number INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,            -- 'none', 'key:NAME' or 'jwt:ISSUER:SUBJECT'; '' when deleted and not yet purged
    id TEXT NOT NULL,
    agent TEXT NOT NULL,            -- that answered last
    head INTEGER NOT NULL,          -- the last message of the current branch; 0 when there is none
    state INTEGER,                  -- the current state in agui_states
    interrupts TEXT,                -- open on the current branch: JSON, NULL for none
    messages INTEGER NOT NULL,      -- the number of messages, and so of the last one
    bytes INTEGER NOT NULL,         -- of messages and states
    version INTEGER NOT NULL,       -- how often the content has changed
    run INTEGER NOT NULL,           -- the newest run
    run_id TEXT NOT NULL,
    holder TEXT,                    -- the process that drives the newest run; NULL when it has ended
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (owner, id)
);
CREATE UNIQUE INDEX agui_threads_of_owner ON agui_threads (owner, run);

CREATE TABLE agui_messages (
    thread INTEGER NOT NULL,
    number INTEGER NOT NULL,        -- within the thread, from 1
    parent INTEGER NOT NULL,        -- the message before it; 0 for none
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    run INTEGER,                    -- that made it; NULL when a client brought it
    body TEXT NOT NULL,             -- the whole message, JSON
    PRIMARY KEY (thread, number)
) WITHOUT ROWID;

CREATE TABLE agui_states (
    thread INTEGER NOT NULL,
    number INTEGER NOT NULL,        -- twice the run's number when the request brought it, one more when the run left it
    body TEXT NOT NULL,             -- JSON
    PRIMARY KEY (thread, number)
) WITHOUT ROWID;

CREATE TABLE agui_runs (
    number INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    detached INTEGER NOT NULL,      -- 1: has a log
    status TEXT NOT NULL,
    delivered INTEGER NOT NULL,     -- 1: the response reached a client to its end
    head INTEGER NOT NULL,          -- the last message of its branch
    state INTEGER,                  -- in agui_states
    interrupts TEXT,                -- open when it ended: JSON, NULL for none
    answered TEXT,                  -- the ids of the interrupts that it answered: JSON, NULL for none
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    events INTEGER NOT NULL,        -- of an ended run; those of a running one are in its log
    usage TEXT,                     -- JSON, NULL for none
    failure TEXT,                   -- JSON, NULL for none
    has_log INTEGER NOT NULL,       -- 1: ended, and its log has not been removed
    UNIQUE (thread, id)
);
CREATE INDEX agui_runs_logged ON agui_runs (ended_at) WHERE has_log = 1;

CREATE TABLE agui_events (
    run INTEGER NOT NULL,
    last INTEGER NOT NULL,          -- the number of the batch's last event
    first INTEGER NOT NULL,
    body TEXT NOT NULL,             -- one line of JSON an event
    PRIMARY KEY (run, last)
) WITHOUT ROWID;
