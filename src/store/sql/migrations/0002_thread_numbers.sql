-- Threads get numbers, and what belongs to a thread is found by its number: rows that are written at the same
-- time are then neighbours, and a transaction for many runs touches a few pages in place of one for each of them.
-- The identifiers, which come in no order, are in one index alone.

ALTER TABLE agui_threads RENAME TO agui_threads_1;
ALTER TABLE agui_contents RENAME TO agui_contents_1;
ALTER TABLE agui_runs RENAME TO agui_runs_1;
DROP INDEX agui_threads_of_owner;
DROP INDEX agui_threads_idle;
DROP INDEX agui_threads_leased;
DROP INDEX agui_runs_logged;

CREATE TABLE agui_threads (
    thread_number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_key TEXT COLLATE BINARY NOT NULL UNIQUE,
    thread_id TEXT,                         -- in JSON, when the key is not the identifier
    owner_key TEXT COLLATE BINARY NOT NULL,
    owner_id TEXT,                          -- in JSON, when the key is not the identifier
    agent TEXT NOT NULL,
    token BIGINT NOT NULL,                  -- of the last lease
    run_key TEXT COLLATE BINARY NOT NULL,   -- of the last run
    run_id TEXT,
    holder TEXT COLLATE BINARY,             -- who holds the lease; NULL when no run is running
    lease_until BIGINT,
    cancel BIGINT NOT NULL,
    version BIGINT NOT NULL,
    open_interrupts BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX agui_threads_of_owner ON agui_threads (owner_key, updated_at DESC, thread_key);
CREATE INDEX agui_threads_idle ON agui_threads (updated_at, thread_number) WHERE holder IS NULL;
CREATE INDEX agui_threads_leased ON agui_threads (holder) WHERE holder IS NOT NULL;

CREATE TABLE agui_contents (
    thread_number INTEGER NOT NULL PRIMARY KEY,
    messages TEXT NOT NULL,
    state TEXT,                             -- NULL until a run had one; 'null' is a state
    interrupts TEXT NOT NULL
);

-- A number is never used again, and small, for every row of the log has it.
CREATE TABLE agui_runs (
    run_number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_number BIGINT NOT NULL,
    run_key TEXT COLLATE BINARY NOT NULL,
    run_id TEXT,
    agent TEXT NOT NULL,
    detached BIGINT NOT NULL,
    status TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    end_token BIGINT,                       -- of the lease that finished it
    events BIGINT NOT NULL,                 -- of an ended run; a running one has its log
    usage TEXT,
    failure TEXT,
    has_log BIGINT NOT NULL,                -- of an ended run: whether its log is still there
    UNIQUE (thread_number, run_key)
);
CREATE INDEX agui_runs_logged ON agui_runs (ended_at, run_number) WHERE has_log = 1;

INSERT INTO agui_threads (thread_key, thread_id, owner_key, owner_id, agent, token, run_key, run_id, holder,
    lease_until, cancel, version, open_interrupts, created_at, updated_at)
SELECT thread_key, thread_id, owner_key, owner_id, agent, token, run_key, run_id, holder,
    lease_until, cancel, version, open_interrupts, created_at, updated_at
FROM agui_threads_1 ORDER BY created_at, thread_key;

INSERT INTO agui_contents (thread_number, messages, state, interrupts)
SELECT t.thread_number, c.messages, c.state, c.interrupts
FROM agui_contents_1 AS c JOIN agui_threads AS t ON t.thread_key = c.thread_key ORDER BY t.thread_number;

INSERT INTO agui_runs (run_number, thread_number, run_key, run_id, agent, detached, status, started_at, ended_at,
    end_token, events, usage, failure, has_log)
SELECT r.run_number, t.thread_number, r.run_key, r.run_id, r.agent, r.detached, r.status, r.started_at, r.ended_at,
    r.end_token, r.events, r.usage, r.failure, r.has_log
FROM agui_runs_1 AS r JOIN agui_threads AS t ON t.thread_key = r.thread_key ORDER BY r.run_number;

-- Postgres only: SELECT setval(pg_get_serial_sequence('agui_runs', 'run_number'), (SELECT COALESCE(MAX(run_number), 0) + 1 FROM agui_runs), false);

DROP TABLE agui_runs_1;
DROP TABLE agui_contents_1;
DROP TABLE agui_threads_1;
