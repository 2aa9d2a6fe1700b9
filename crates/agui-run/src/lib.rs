//! One run, from the request to its stored end. Knows no routes.
//!
//! [`Runs::start`] leads every run through [`start`], [`admission`] and [`launch`]. Below them the folders are layers, each
//! of which uses only those after it: [`persist`] (what is written when), [`turn`] (whose turn it is: the queue and the
//! lease), [`log`] (what clients of a detached run follow), [`drive`] (the agent is polled and its events are guarded),
//! [`conversation`] (what the agent gets), [`events`] (what others are told of), and [`limits`] (what clients may take).
//! [`ThreadRuns`] is what the runs of a server share: the store, with the queue and the cache of its threads.
//!
//! There is no channel and no task between an agent and its response, so a slow client slows its agent.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so each one that stays says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

mod admission;
mod continuation;
pub(crate) mod control;
pub(crate) mod conversation;
pub(crate) mod drive;
pub(crate) mod events;
mod launch;
pub(crate) mod limits;
#[doc(hidden)]
pub mod log;
mod maintenance;
mod measured_store;
mod options;
pub(crate) mod persist;
mod request;
mod runs;
mod start;
#[doc(hidden)]
pub mod threads;
pub(crate) mod turn;

pub use self::{
    drive::{driver::Run, guard::Guard, transcript::Transcript},
    limits::quota::PrincipalLimits,
    options::{ConcurrentRuns, OnDisconnect, RunOptions, ThreadOptions},
};
pub(crate) use self::{
    events::thread_event_hub::ThreadEvents, log::Follower, runs::Runs,
    turn::thread_runs::ThreadRuns,
};

#[doc(hidden)]
pub mod host;
