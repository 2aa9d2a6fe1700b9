//! Items that only the other crates of the workspace need. Not a part of the interface: they change without notice.

pub use crate::{
    conversation::resume::has_expired,
    drive::{
        clock::RunLimits,
        progress::{Drive, Progress},
    },
    events::{
        debug_events::DebugEvent,
        thread_event_hub::{ChangedThread, ThreadChange, ThreadEvent, ThreadEvents},
    },
    limits::{
        memory::{RequestSize, RunMemoryBudget},
        run_permit::RunPermit,
        start_error::StartError,
    },
    log::{FollowError, Follower},
    persist::stored_run::thread_deleted,
    request::{RunRequest, StartedRun},
    runs::{Runs, RunsBuilder},
    turn::thread_core::{ThreadCore, ThreadData},
};
