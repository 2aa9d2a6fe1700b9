-- Threads, their runs, and the logs of runs. TEXT and BIGINT only, so that one text does for SQLite and Postgres.
-- Keys are identifiers, or the hash of one that is too long (src/store/sql/key.rs); times are milliseconds.

-- A small row that every run writes: what was said is in agui_contents, so that a lease can be taken,
-- renewed and given back without writing a whole conversation again.
CREATE TABLE agui_threads (
    thread_key TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
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
CREATE INDEX agui_threads_idle ON agui_threads (updated_at, thread_key) WHERE holder IS NULL;
CREATE INDEX agui_threads_leased ON agui_threads (holder) WHERE holder IS NOT NULL;

CREATE TABLE agui_contents (
    thread_key TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    messages TEXT NOT NULL,
    state TEXT,                             -- NULL until a run had one; 'null' is a state
    interrupts TEXT NOT NULL
);

-- A number is never used again, and small, for every row of the log has it.
CREATE TABLE agui_runs (
    run_number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_key TEXT COLLATE BINARY NOT NULL,
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
    UNIQUE (thread_key, run_key)
);
CREATE INDEX agui_runs_logged ON agui_runs (ended_at, run_number) WHERE has_log = 1;

-- One row a batch of events. The key is small and runs of the same time are neighbours in it: most of what an
-- append costs is the pages that it touches. It has the last event, for readers ask what comes after one.
CREATE TABLE agui_log (
    run_number BIGINT NOT NULL,
    last_event BIGINT NOT NULL,
    first_event BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    body TEXT NOT NULL,                     -- one line of JSON an event
    PRIMARY KEY (run_number, last_event)
);
