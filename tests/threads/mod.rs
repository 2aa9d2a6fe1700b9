//! What clients do to stored threads, over HTTP. The store is the one in memory; `tests/store` checks all stores against one
//! contract.

#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs, unreachable_pub)]

#[path = "../support/conversation.rs"]
mod conversation;
mod copies;
mod deleted;
mod edits;
mod events;
mod feedback;
mod owners;
#[path = "../support/poll.rs"]
mod poll;
#[path = "../support/postgres.rs"]
mod postgres;
mod recording;
mod search;
#[path = "../support/running.rs"]
mod support;
mod titles;
mod view;

use conversation::{ask, ask_and_leave, ask_detached, changed_options, puppet, refusal, said, types};
use support::read_until;
