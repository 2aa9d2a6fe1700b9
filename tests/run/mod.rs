//! Runs over HTTP, as clients see them, and the guard of their events. The store is the one in memory; `tests/store` checks
//! all stores against one contract.

#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs, unreachable_pub)]

mod branches;
#[path = "../support/conversation.rs"]
mod conversation;
mod detached;
mod ending;
mod followers;
mod guard;
mod history;
mod interrupts;
mod limits;
mod lost;
#[path = "../support/poll.rs"]
mod poll;
mod queue;
mod resume;
#[path = "../support/running.rs"]
mod support;
mod sync;
#[path = "../support/mod.rs"]
mod whole_streams;

use conversation::{ask, ask_and_leave, ask_detached, changed_options, puppet, refusal, said, types};
use support::read_until;
