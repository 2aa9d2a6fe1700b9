//! One run, from the request to its stored end. Knows no routes.
//!
//! [`Runs::start`] leads every run through [`start`], [`admission`] and [`launch`], and past the
//! gates of [`gate`]. Below them the folders are layers; each uses only those after it:
//! [`persist`] (writes to the store), [`turn`] (the queue and the lease of a thread), [`log`] (the
//! logs of detached runs), [`drive`] (polls the agent and guards its events), [`conversation`] (the
//! agent's input), [`events`] (changes and events for other readers), and [`limits`] (runs, memory
//! and stored bytes of clients).
//! The runs of a server share [`ThreadCore`]: the store, the queue and the cache of threads.
//!
//! There is no channel and no task between an agent and its response, so a slow client slows its agent.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so each
// remaining one says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

mod admission;
mod continuation;
pub(crate) mod control;
pub(crate) mod conversation;
pub(crate) mod drive;
mod earlier_attempt;
pub(crate) mod events;
mod gate;
mod launch;
pub(crate) mod limits;
#[doc(hidden)]
pub mod log;
mod maintenance;
mod measured_store;
mod options;
pub(crate) mod persist;
mod queued;
mod repeat;
mod request;
mod restate;
mod runs;
mod start;
#[doc(hidden)]
pub mod threads;
pub(crate) mod turn;
mod turn_in_store;

pub use self::{
    drive::{driver::Run, guard::Guard, transcript::Transcript},
    limits::quota::PrincipalLimits,
    options::{ConcurrentRuns, OnDisconnect, RunOptions, ThreadOptions},
};
pub(crate) use self::{
    events::thread_event_hub::ThreadEvents, log::Follower, runs::Runs,
    turn::thread_core::ThreadCore,
};

#[doc(hidden)]
pub mod host;
