//! Runs of agents, from the request to the stored end. Knows nothing of HTTP.
//!
//! [`Runs::start`] leads every run through `admission` (turn and lease), `plan` (the agent's input) and `launch`.
//! `driver` polls the agent, [`guard`] checks its events, and `recorder` stores the end before the terminal event is
//! sent. [`Threads`] are the stored threads.
//!
//! There is no channel and no task between an agent and its response, so a slow client slows its agent.

mod active;
mod admission;
mod agents;
mod branch;
mod clock;
mod complete_on_drop;
mod control;
mod conversation;
mod detached;
mod drive;
mod driver;
pub mod guard;
mod launch;
mod log;
mod maintenance;
mod options;
mod plan;
mod queue;
mod quota;
mod recorder;
mod recover;
mod request;
mod resume;
mod runs;
mod start;
mod start_error;
mod stored_run;
mod threads;
mod transcript;
mod views;

pub use agents::AgentEntry;
pub use clock::RunLimits;
pub use control::RunControl;
pub use drive::{Drive, EventSink, Progress};
pub use driver::Run;
pub use guard::{Guard, Violation};
pub use log::{FollowError, Follower, LogChunk};
pub use options::{ConcurrentRuns, OnDisconnect, ThreadOptions};
pub use quota::{PrincipalLimits, Slot};
pub use request::{DetachedRun, RunRequest, StartedRun};
pub use resume::has_expired;
pub use runs::{Runs, RunsBuilder};
pub use start_error::StartError;
pub use stored_run::StoredRun;
pub use threads::Threads;
pub use transcript::Transcript;
pub use views::{CancelOutcome, LookupError, ThreadConnection};

pub use crate::agent::{Forwarded, Principal};
