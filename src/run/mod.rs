//! One run, from the request to its stored end, in five acts. Knows nothing of HTTP.
//!
//! [`Runs::start`] leads every run through them: [`turn`] (whose turn it is: queue, quota, lease), [`conversation`] (what
//! the agent gets), [`drive`] (the agent is polled and its events are guarded), [`persist`] (what is written when), and
//! [`log`] (what clients of a detached run follow). [`ThreadRuns`] is what the runs of a server share when it stores threads.
//!
//! There is no channel and no task between an agent and its response, so a slow client slows its agent.

mod agents;
pub(crate) mod conversation;
pub(crate) mod drive;
pub(crate) mod log;
mod measured_store;
mod options;
pub(crate) mod persist;
mod request;
mod runs;
mod start;
mod thread_runs;
pub(crate) mod turn;

pub(crate) use self::{
    agents::AgentEntry,
    conversation::resume::has_expired,
    drive::progress::{Drive, Progress},
    log::{
        FollowError, Follower,
        debug_events::DebugEvent,
        thread_event_hub::{ChangedThread, ThreadChange, ThreadEvent, ThreadEvents},
    },
    request::{DetachedRun, RunRequest, StartedRun},
    runs::{Runs, RunsBuilder},
    turn::{
        memory::{RequestSize, RunMemoryBudget},
        slot::Slot,
        start_error::StartError,
        thread_data::ThreadData,
    },
};
pub use self::{
    drive::{clock::RunLimits, driver::Run, guard::Guard, transcript::Transcript},
    options::{ConcurrentRuns, OnDisconnect, ThreadOptions},
    turn::quota::PrincipalLimits,
};
pub(crate) use self::{
    thread_runs::{ThreadRuns, owner_of},
    turn::owner_limit::{OwnerLimit, OwnerPermit},
};
