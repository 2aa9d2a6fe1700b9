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
mod copies;
mod debug_events;
mod detached;
mod drive;
mod driver;
mod feedback;
pub mod guard;
mod ids;
mod launch;
mod log;
mod maintenance;
mod message_pages;
mod options;
mod owner_hub;
mod owner_limit;
mod plan;
mod queue;
mod quota;
mod recorder;
mod recover;
mod removal;
mod request;
mod resume;
mod run_log;
mod run_recording;
mod run_report;
mod runs;
mod start;
mod start_error;
mod stored_request;
mod stored_run;
mod thread_data;
mod thread_edits;
mod thread_event_hub;
mod thread_events;
mod threads;
mod title;
mod title_agent;
mod transcript;
mod views;

pub use agents::AgentEntry;
pub use clock::RunLimits;
pub use control::RunControl;
pub use copies::CopyError;
pub use debug_events::{DebugEvent, DebugEvents};
pub use drive::{Drive, EventSink, Progress};
pub use driver::Run;
pub use feedback::{FeedbackError, MAX_COMMENT_BYTES};
pub use guard::{Guard, Violation};
pub use log::{FollowError, Follower, LogChunk};
pub use message_pages::{MessageList, MessageSelection, ThreadOverview};
pub use options::{ConcurrentRuns, OnDisconnect, ThreadOptions};
pub(crate) use owner_limit::OwnerLimit;
pub use quota::{PrincipalLimits, Slot};
pub use request::{DetachedRun, RunRequest, StartedRun};
pub use resume::has_expired;
pub use run_log::{LogPage, RunLog};
pub use run_recording::RunRecording;
pub use runs::{Runs, RunsBuilder};
pub use start_error::StartError;
pub use stored_run::StoredRun;
pub use thread_data::ThreadData;
pub use thread_edits::{EditError, MAX_METADATA_BYTES, ThreadEdit};
pub use thread_event_hub::{ThreadChange, ThreadEvent, ThreadEvents};
pub use threads::Threads;
pub use title::MAX_TITLE_CHARS;
pub use transcript::Transcript;
pub use views::{CancelOutcome, LookupError, ThreadConnection};

pub use crate::agent::{Forwarded, Principal};
