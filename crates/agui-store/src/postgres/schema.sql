-- The tables of agui-server, version 4. Times are milliseconds since 1970; JSON is text.

CREATE TABLE agui_schema (version BIGINT NOT NULL);
INSERT INTO agui_schema (version) VALUES (4);

-- Numbers of runs: each run of a thread has a higher one than the run before it.
CREATE SEQUENCE agui_run_number;

CREATE TABLE agui_threads (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,    -- 'none', 'key:NAME' or 'jwt:ISSUER:SUBJECT'
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT NOT NULL,                -- the agent of the newest run
    title TEXT,
    archived BOOLEAN NOT NULL,          -- by its owner
    metadata TEXT,                      -- the owner's own data: JSON, NULL if empty
    head BIGINT NOT NULL,               -- the last message of the current branch; 0 if the thread is empty
    state BIGINT,                       -- the current state in agui_states
    interrupts TEXT,                    -- open on the current branch: JSON, NULL if empty
    messages BIGINT NOT NULL,           -- the number of messages, which is the number of the last one
    bytes BIGINT NOT NULL,              -- of messages and states
    version BIGINT NOT NULL,            -- the number of changes so far
    run BIGINT NOT NULL,                -- the newest run
    run_id TEXT NOT NULL,
    holder TEXT,                        -- the process that runs the newest run; NULL if it has ended
    lease_until BIGINT,                 -- the end of the lease; NULL if the newest run has ended
    cancel BOOLEAN NOT NULL,            -- whether the newest run was asked to be cancelled
    followed_until TIMESTAMPTZ,         -- until then a process may follow its runs in the store (follow.sql)
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (owner, id)
);
CREATE INDEX agui_threads_of_owner ON agui_threads (owner, run);
CREATE INDEX agui_threads_leased ON agui_threads (lease_until) WHERE lease_until IS NOT NULL;

CREATE TABLE agui_messages (
    thread BIGINT NOT NULL,
    number BIGINT NOT NULL,             -- within the thread, from 1
    parent BIGINT NOT NULL,             -- the message before it; 0 for the first
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    run BIGINT,                         -- the run that made it; NULL if a client sent it
    body TEXT NOT NULL,                 -- the whole message, JSON
    feedback TEXT,                      -- the owner's opinion: JSON
    PRIMARY KEY (thread, number)
);
-- The messages that begin a branch. The others follow the message with the number before theirs.
CREATE INDEX agui_messages_branching ON agui_messages (thread, parent) WHERE parent <> number - 1;

-- The words of titles and messages, for the search (words.rs). Each begins with the agui_owner_word of its owner.
CREATE TABLE agui_words (
    thread BIGINT NOT NULL,
    message BIGINT NOT NULL,            -- its number; 0 for the title
    words TSVECTOR NOT NULL,
    PRIMARY KEY (thread, message)
);
-- New rows wait in a list of up to 4 MB, the default. So a message of 60 words costs 0.2 ms on average, and one in 1,000
-- waits 200 ms while the list is added to the index. With a list of 256 KB or none, a message costs 0.5 ms or more.
CREATE INDEX agui_words_found ON agui_words USING GIN (words);

-- Has few characters, because each word has them. Two owners can share them, so searches select by
-- owner as well.
CREATE FUNCTION agui_owner_word(owner TEXT) RETURNS TEXT LANGUAGE SQL IMMUTABLE PARALLEL SAFE
    AS $$ SELECT left(encode(sha256(convert_to(owner, 'UTF8')), 'hex'), 6) $$;

CREATE TABLE agui_states (
    thread BIGINT NOT NULL,
    number BIGINT NOT NULL,             -- 2 * run: the state a run started from; 2 * run + 1: the state it ended with
    body TEXT NOT NULL,                 -- JSON
    PRIMARY KEY (thread, number)
);

CREATE TABLE agui_runs (
    number BIGINT PRIMARY KEY,
    thread BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,            -- among the runs with this id, from 1
    alias TEXT COLLATE "C",             -- a second id, of a page that asked again; NULL if there is none
    asked TEXT COLLATE "C",             -- a digest of its request; NULL in a copied thread
    continues BOOLEAN NOT NULL,         -- whether it continues the attempt before it
    agent TEXT NOT NULL,
    detached BOOLEAN NOT NULL,          -- whether it has a log
    status TEXT NOT NULL,
    delivered BOOLEAN NOT NULL,         -- whether the response reached a client to its end
    head BIGINT NOT NULL,               -- the last message of its branch
    first_run BIGINT,                   -- the first run of its branch; NULL in a copied thread
    state BIGINT,                       -- in agui_states
    interrupts TEXT,                    -- open when it ended: JSON, NULL if empty
    answered TEXT,                      -- the replies that it brought (run/conversation/decided.rs): JSON, NULL if empty
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    events BIGINT NOT NULL,             -- the number of events of an ended run
    usage TEXT,                         -- JSON, NULL if empty
    failure TEXT,                       -- JSON, NULL if empty
    end_reason TEXT,                    -- why it ended before its agent had finished; NULL if the agent had
    has_unsafe_calls BOOLEAN NOT NULL DEFAULT FALSE, -- whether a call started that must not be repeated
    takeovers BIGINT NOT NULL DEFAULT 0, -- how often another server has taken it over
    has_log BOOLEAN NOT NULL,           -- whether it has ended, and its log or its row of agui_run_starts is stored
    UNIQUE (thread, id, attempt)
);
CREATE INDEX agui_runs_logged ON agui_runs (ended_at) WHERE has_log;
CREATE INDEX agui_runs_alias ON agui_runs (thread, alias) WHERE alias IS NOT NULL;

CREATE TABLE agui_events (
    run BIGINT NOT NULL,
    last BIGINT NOT NULL,               -- the number of the batch's last event
    first BIGINT NOT NULL,
    body TEXT NOT NULL,                 -- one line of JSON an event
    times TEXT NOT NULL,                -- one number an event: milliseconds since the run's start, separated by spaces
    PRIMARY KEY (run, last)
);

-- Runs that wait for their turn. A row is removed in the transaction that begins its run.
CREATE TABLE agui_queued_runs (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    asked TEXT COLLATE "C",             -- a digest of its request
    agent TEXT NOT NULL,
    request TEXT NOT NULL,              -- JSON: the whole input, and the caller
    holder TEXT NOT NULL,               -- the process that begins it; '' if it was released
    takeovers BIGINT NOT NULL,          -- how often another process has taken it
    queued_at BIGINT NOT NULL,
    held_at BIGINT NOT NULL,            -- when its holder took it
    UNIQUE (thread, id)
);

-- Files of owners. The row is reserved before the chunks are stored, and is hidden until then.
CREATE TABLE agui_files (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL,    -- as in agui_threads
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    digest TEXT COLLATE "C" NOT NULL,   -- the SHA-256 of all bytes
    media_type TEXT NOT NULL,           -- as the bytes show
    name TEXT,
    bytes BIGINT NOT NULL,
    width BIGINT,                       -- of an image, in pixels
    height BIGINT,
    created_at BIGINT NOT NULL,
    unused_since BIGINT,                -- when it was made or lost a thread; NULL if a thread uses it
    object_key TEXT COLLATE "C",        -- of the bytes at an object store; NULL if they are in agui_file_chunks
    stored BOOLEAN NOT NULL             -- whether all bytes are stored
);
CREATE UNIQUE INDEX agui_files_with_bytes ON agui_files (owner, digest) WHERE stored;
CREATE INDEX agui_files_of_owner ON agui_files (owner, number);
CREATE INDEX agui_files_unused ON agui_files (unused_since) WHERE unused_since IS NOT NULL;

-- The numbers and bytes of files, kept by a trigger: a limit is checked without adding up files.
CREATE TABLE agui_file_sums (
    owner TEXT COLLATE "C" PRIMARY KEY, -- as in agui_files; '' for all files
    files BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);
INSERT INTO agui_file_sums (owner, files, bytes) VALUES ('', 0, 0);
-- The row of all files is locked first, here and by a reservation, so that no two transactions wait for each other.
CREATE FUNCTION agui_count_file() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE agui_file_sums SET files = files + 1, bytes = bytes + NEW.bytes WHERE owner = '';
        INSERT INTO agui_file_sums AS sums (owner, files, bytes) VALUES (NEW.owner, 1, NEW.bytes)
        ON CONFLICT (owner) DO UPDATE SET files = sums.files + 1, bytes = sums.bytes + NEW.bytes;
    ELSE
        -- A damaged number of bytes may be any one.
        OLD.bytes := CASE WHEN OLD.bytes BETWEEN 0 AND 1099511627776 THEN OLD.bytes ELSE 0 END;
        UPDATE agui_file_sums SET files = GREATEST(files - 1, 0), bytes = GREATEST(bytes - OLD.bytes, 0) WHERE owner = '';
        UPDATE agui_file_sums SET files = GREATEST(files - 1, 0), bytes = GREATEST(bytes - OLD.bytes, 0)
        WHERE owner = OLD.owner AND owner <> '';
        DELETE FROM agui_file_sums WHERE owner = OLD.owner AND owner <> '' AND files = 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER agui_files_counted AFTER INSERT OR DELETE ON agui_files FOR EACH ROW EXECUTE FUNCTION agui_count_file();

CREATE TABLE agui_file_chunks (
    file BIGINT NOT NULL,
    number BIGINT NOT NULL,             -- within the file, from 0
    digest TEXT NOT NULL,               -- the SHA-256 of the body
    body BYTEA NOT NULL,                -- 256 KiB; the last one is shorter
    PRIMARY KEY (file, number)
);
-- Pictures and documents are compressed already.
ALTER TABLE agui_file_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

-- The objects of deleted files, which are to be deleted.
CREATE TABLE agui_deleted_objects (
    object_key TEXT COLLATE "C" PRIMARY KEY
);
CREATE FUNCTION agui_note_deleted_object() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO agui_deleted_objects (object_key) VALUES (OLD.object_key) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- Keys are short. A damaged key could be too long for the index.
CREATE TRIGGER agui_files_deleted AFTER DELETE ON agui_files FOR EACH ROW WHEN (LENGTH(OLD.object_key) <= 1024)
    EXECUTE FUNCTION agui_note_deleted_object();

-- The threads whose messages name a file.
CREATE TABLE agui_file_uses (
    thread BIGINT NOT NULL,
    file BIGINT NOT NULL,
    PRIMARY KEY (thread, file)
);
CREATE INDEX agui_file_uses_of_file ON agui_file_uses (file);

CREATE TABLE agui_secrets (
    name TEXT PRIMARY KEY,              -- 'files': signs the URLs of files; 'upstream': makes ids for other servers
    value TEXT NOT NULL                 -- hex
);

-- The input of detached runs. A row is kept as long as the run's log. Beside agui_runs, because it
-- can be large.
CREATE TABLE agui_run_starts (
    run BIGINT PRIMARY KEY,
    head BIGINT NOT NULL,               -- the last message before the run; 0 if there is none
    state BIGINT,                       -- in agui_states
    request TEXT NOT NULL               -- JSON: the input without messages and state
);

-- Small secrets of owners, sealed with a key that the database does not have: logins at other servers.
CREATE TABLE agui_sealed (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    value BYTEA NOT NULL,
    version BIGINT NOT NULL,         -- random, another one with each write
    until BIGINT,                    -- when it is swept; NULL if it stays
    PRIMARY KEY (owner, name)
);
