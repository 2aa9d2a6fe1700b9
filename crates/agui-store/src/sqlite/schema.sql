-- The tables of agui-server, version 4. Times are milliseconds since 1970; JSON is text.
-- The process assigns ascending numbers, so rows that are written at the same time are neighbours, and a transaction of
-- many runs changes few pages.

CREATE TABLE agui_schema (version INTEGER NOT NULL);
INSERT INTO agui_schema (version) VALUES (4);

CREATE TABLE agui_threads (
    number INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,            -- 'none', 'key:NAME' or 'jwt:ISSUER:SUBJECT'; '' if unlinked (remove.rs)
    id TEXT NOT NULL,
    agent TEXT NOT NULL,            -- the agent of the newest run
    title TEXT,
    archived INTEGER NOT NULL,      -- 1: by its owner
    metadata TEXT,                  -- the owner's own data: JSON, NULL if empty
    head INTEGER NOT NULL,          -- the last message of the current branch; 0 if the thread is empty
    state INTEGER,                  -- the current state in agui_states
    interrupts TEXT,                -- open on the current branch: JSON, NULL if empty
    indexed INTEGER NOT NULL,       -- the number of messages in agui_words
    indexed_title TEXT,             -- the title in agui_words
    former_owner TEXT,              -- of an unlinked thread
    messages INTEGER NOT NULL,      -- the number of messages, which is the number of the last one
    bytes INTEGER NOT NULL,         -- of messages and states
    version INTEGER NOT NULL,       -- the number of changes so far
    run INTEGER NOT NULL,           -- the newest run
    run_id TEXT NOT NULL,
    holder TEXT,                    -- the process that runs the newest run; NULL if it has ended
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (owner, id)
);
CREATE UNIQUE INDEX agui_threads_of_owner ON agui_threads (owner, run);
CREATE INDEX agui_threads_to_index ON agui_threads (owner) WHERE indexed < messages OR title IS NOT indexed_title;

CREATE TABLE agui_messages (
    thread INTEGER NOT NULL,
    number INTEGER NOT NULL,        -- within the thread, from 1
    parent INTEGER NOT NULL,        -- the message before it; 0 for the first
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    run INTEGER,                    -- the run that made it; NULL if a client sent it
    body TEXT NOT NULL,             -- the whole message, JSON
    feedback TEXT,                  -- the owner's opinion: JSON
    PRIMARY KEY (thread, number)
) WITHOUT ROWID;
-- The messages that begin a branch. The others follow the message with the number before theirs.
CREATE INDEX agui_messages_branching ON agui_messages (thread, parent) WHERE parent <> number - 1;

CREATE TABLE agui_states (
    thread INTEGER NOT NULL,
    number INTEGER NOT NULL,        -- 2 * run: the state a run started from; 2 * run + 1: the state it ended with
    body TEXT NOT NULL,             -- JSON
    PRIMARY KEY (thread, number)
) WITHOUT ROWID;

CREATE TABLE agui_runs (
    number INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    id TEXT NOT NULL,
    attempt INTEGER NOT NULL,       -- among the runs with this id, from 1
    alias TEXT,                     -- a second id, of a page that asked again; NULL if there is none
    asked TEXT,                     -- a digest of its request; NULL in a copied thread
    continues INTEGER NOT NULL,     -- 1: it continues the attempt before it
    agent TEXT NOT NULL,
    detached INTEGER NOT NULL,      -- 1: the run has a log
    status TEXT NOT NULL,
    delivered INTEGER NOT NULL,     -- 1: the response reached a client to its end
    head INTEGER NOT NULL,          -- the last message of its branch
    first_run INTEGER,              -- the first run of its branch; NULL in a copied thread
    state INTEGER,                  -- in agui_states
    interrupts TEXT,                -- open when it ended: JSON, NULL if empty
    answered TEXT,                  -- the replies that it brought (run/conversation/decided.rs): JSON, NULL if empty
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    events INTEGER NOT NULL,        -- the number of events of an ended run
    usage TEXT,                     -- JSON, NULL if empty
    failure TEXT,                   -- JSON, NULL if empty
    end_reason TEXT,                -- why it ended before its agent had finished; NULL if the agent had
    has_unsafe_calls INTEGER NOT NULL DEFAULT 0, -- 1: a call started that must not be repeated
    takeovers INTEGER NOT NULL DEFAULT 0, -- how often another process has taken it over
    has_log INTEGER NOT NULL,       -- 1: it has ended, and its log or its row of agui_run_starts is stored
    UNIQUE (thread, id, attempt)
);
CREATE INDEX agui_runs_logged ON agui_runs (ended_at) WHERE has_log = 1;
CREATE INDEX agui_runs_alias ON agui_runs (thread, alias) WHERE alias IS NOT NULL;

-- In the order of time: a table keyed by run has a page to change for each run of a write.
CREATE TABLE agui_events (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    first INTEGER NOT NULL,         -- the number of the batch's first event
    last INTEGER NOT NULL,
    previous INTEGER NOT NULL,      -- the run's row before it; 0 if there is none
    skip INTEGER NOT NULL,          -- an older row of the run, a step of reading backwards (events.rs); 0 if there is none
    body TEXT NOT NULL,             -- one line of JSON an event
    times TEXT NOT NULL             -- one number an event: milliseconds since the run's start, separated by spaces
);

-- The logs, by run: a row stays until all rows of its log are deleted.
CREATE TABLE agui_log_ends (
    run INTEGER PRIMARY KEY,
    row INTEGER NOT NULL,           -- the newest row in agui_events
    last INTEGER NOT NULL,          -- its last event
    skip INTEGER NOT NULL,          -- as in the newest row
    oldest INTEGER NOT NULL         -- the oldest row in agui_events
);

-- The input of detached runs. A row is kept as long as the run's log. Beside agui_runs, because it
-- can be large.
CREATE TABLE agui_run_starts (
    run INTEGER PRIMARY KEY,
    head INTEGER NOT NULL,          -- the last message before the run; 0 if there is none
    state INTEGER,                  -- in agui_states
    request TEXT NOT NULL           -- JSON: the input without messages and state
);

-- Runs that wait for their turn. A row is removed in the transaction that begins its run.
CREATE TABLE agui_queued_runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread INTEGER NOT NULL,
    id TEXT NOT NULL,
    asked TEXT,                     -- a digest of its request
    agent TEXT NOT NULL,
    request TEXT NOT NULL,          -- JSON: the whole input, and the caller
    holder TEXT NOT NULL,           -- the process that begins it; '' if it was released
    takeovers INTEGER NOT NULL,     -- how often another process has taken it
    queued_at INTEGER NOT NULL,
    held_at INTEGER NOT NULL,       -- when its holder took it
    UNIQUE (thread, id)
);

-- Files of owners. The row is reserved before the chunks are stored, and is hidden until then.
CREATE TABLE agui_files (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,            -- as in agui_threads; '' if unlinked (stored_files.rs)
    id TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL,           -- the SHA-256 of all bytes
    media_type TEXT NOT NULL,       -- as the bytes show
    name TEXT,
    bytes INTEGER NOT NULL,
    width INTEGER,                  -- of an image, in pixels
    height INTEGER,
    created_at INTEGER NOT NULL,
    unused_since INTEGER,           -- when it was made or lost a thread; NULL if a thread uses it
    object_key TEXT,                -- of the bytes at an object store; NULL if they are in agui_file_chunks
    stored INTEGER NOT NULL         -- 1: all bytes are stored
);
CREATE UNIQUE INDEX agui_files_with_bytes ON agui_files (owner, digest) WHERE stored = 1;
CREATE INDEX agui_files_of_owner ON agui_files (owner, number);
CREATE INDEX agui_files_unused ON agui_files (unused_since) WHERE unused_since IS NOT NULL;

-- The numbers and bytes of files, kept by triggers: a limit is checked without adding up files.
CREATE TABLE agui_file_sums (
    owner TEXT PRIMARY KEY,         -- as in agui_files; '' for all files, also unlinked ones
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER agui_files_counted AFTER INSERT ON agui_files BEGIN
    INSERT INTO agui_file_sums (owner, files, bytes) VALUES ('', 1, NEW.bytes), (NEW.owner, 1, NEW.bytes)
    ON CONFLICT (owner) DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER agui_files_uncounted AFTER DELETE ON agui_files BEGIN
    UPDATE agui_file_sums SET files = MAX(files - 1, 0),
        bytes = MAX(bytes - CASE WHEN OLD.bytes BETWEEN 0 AND 1099511627776 THEN OLD.bytes ELSE 0 END, 0)
    WHERE owner IN ('', OLD.owner);
    DELETE FROM agui_file_sums WHERE owner = OLD.owner AND owner <> '' AND files = 0;
END;
CREATE TRIGGER agui_files_unlinked AFTER UPDATE OF owner ON agui_files WHEN NEW.owner = '' AND OLD.owner <> '' BEGIN
    UPDATE agui_file_sums SET files = MAX(files - 1, 0),
        bytes = MAX(bytes - CASE WHEN OLD.bytes BETWEEN 0 AND 1099511627776 THEN OLD.bytes ELSE 0 END, 0)
    WHERE owner = OLD.owner;
    DELETE FROM agui_file_sums WHERE owner = OLD.owner AND files = 0;
END;

CREATE TABLE agui_file_chunks (
    file INTEGER NOT NULL,
    number INTEGER NOT NULL,        -- within the file, from 0
    digest TEXT NOT NULL,           -- the SHA-256 of the body
    body BLOB NOT NULL,             -- 256 KiB; the last one is shorter
    PRIMARY KEY (file, number)
) WITHOUT ROWID;

-- The objects of deleted files, which are to be deleted.
CREATE TABLE agui_deleted_objects (
    object_key TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TRIGGER agui_files_deleted AFTER DELETE ON agui_files WHEN OLD.object_key IS NOT NULL BEGIN
    INSERT OR IGNORE INTO agui_deleted_objects (object_key) VALUES (OLD.object_key);
END;

-- The threads whose messages name a file.
CREATE TABLE agui_file_uses (
    thread INTEGER NOT NULL,
    file INTEGER NOT NULL,
    PRIMARY KEY (thread, file)
) WITHOUT ROWID;
CREATE INDEX agui_file_uses_of_file ON agui_file_uses (file);

CREATE TABLE agui_secrets (
    name TEXT PRIMARY KEY,          -- 'files': signs the URLs of files; 'upstream': makes ids for other servers
    value TEXT NOT NULL             -- hex
) WITHOUT ROWID;

-- Small secrets of owners, sealed with a key that the database does not have: logins at other servers.
CREATE TABLE agui_sealed (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    version INTEGER NOT NULL,         -- random, another one with each write
    until INTEGER,                    -- when it is swept; NULL if it stays
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;

-- The owed work (truncate.rs). The row of an unlinked thread says that it has to be purged.
CREATE TABLE agui_owed (
    what TEXT PRIMARY KEY,          -- 'truncation': the write-ahead log may have deleted text
    number INTEGER NOT NULL         -- how often it was promised
) WITHOUT ROWID;

-- The search index is agui_words, which MAKE_INDEX (search.rs) makes: the words of titles and messages, without the texts. Each
-- begins with the hash of its owner.
