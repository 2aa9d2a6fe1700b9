//! Runs: from the request that asks for one to its stored end, free of HTTP.
//!
//! [`Runs::start`] is the one door (`start`). Behind it, in order:
//! - `admission`: the run gets its slot, waits for its turn on the thread (`queue`), and takes the thread's lease.
//! - `plan` and `conversation`: the stored branch and the client's list become the conversation that the agent
//!   answers; `resume` checks the answers to open interrupts.
//! - `launch`: the run starts, in its response (`stored_run`) or in a task of its own with a log that clients follow
//!   (`detached`, `log`).
//! - `driver`: polls the agent and owns the run's frame; [`guard`] lets only a legal stream pass; `transcript` holds
//!   messages and state as a client will hold them; `recorder` stores the end before the client is told.
//!
//! [`Threads`] has the stored threads themselves: `views` lists, reads, follows and deletes them, `maintenance` renews
//! leases and sweeps, `recover` closes runs whose server was lost.
//!
//! A run is polled by its consumer, a response body or a task; no channel and no queue of events is in between.

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
mod phase;
mod plan;
mod queue;
mod quota;
mod recorder;
mod recover;
mod request;
mod resume;
mod runs;
mod slot;
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
pub use quota::PrincipalLimits;
pub use request::{DetachedRun, RunRequest, StartedRun};
pub use resume::has_expired;
pub use runs::{Runs, RunsBuilder};
pub use slot::Slot;
pub use start_error::StartError;
pub use stored_run::StoredRun;
pub use threads::Threads;
pub use transcript::Transcript;
pub use views::{CancelOutcome, LookupError, ThreadConnection};

pub use crate::agent::{Forwarded, Principal};
