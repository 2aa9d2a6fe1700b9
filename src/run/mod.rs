//! One run, from the request to its stored end, in five acts. Knows nothing of HTTP.
//!
//! [`Runs::start`] leads every run through them: [`turn`] (whose turn it is: queue, quota, lease), [`conversation`] (what
//! the agent gets), [`drive`] (the agent is polled and its events are guarded), [`persist`] (what is written when), and
//! [`log`] (what clients of a detached run follow). [`ThreadRuns`] is what the runs of a server share when it stores threads.
//!
//! There is no channel and no task between an agent and its response, so a slow client slows its agent.

mod admission;
mod agents;
mod continuation;
pub(crate) mod control;
pub(crate) mod conversation;
pub(crate) mod drive;
pub(crate) mod events;
pub(crate) mod launch;
pub(crate) mod limits;
pub(crate) mod log;
mod maintenance;
mod measured_store;
mod options;
pub(crate) mod persist;
mod request;
mod runs;
mod start;
pub(crate) mod turn;

pub(crate) use self::{
    agents::AgentEntry,
    conversation::resume::has_expired,
    drive::progress::{Drive, EventSink, Progress},
    events::{
        debug_events::DebugEvent,
        thread_event_hub::{ChangedThread, ThreadChange, ThreadEvent, ThreadEvents},
    },
    limits::{
        memory::{RequestSize, RunMemoryBudget},
        owner_limit::{OwnerLimit, OwnerPermit},
        slot::Slot,
        start_error::StartError,
    },
    log::{FollowError, Follower},
    request::{DetachedRun, RunRequest, StartedRun},
    runs::{Runs, RunsBuilder},
    turn::{
        thread_data::ThreadData,
        thread_runs::{ThreadRuns, owner_of},
    },
};
pub use self::{
    drive::{clock::RunLimits, driver::Run, guard::Guard, transcript::Transcript},
    limits::quota::PrincipalLimits,
    options::{ConcurrentRuns, OnDisconnect, ThreadOptions},
};
