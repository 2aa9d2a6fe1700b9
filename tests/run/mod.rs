//! Runs over HTTP, as clients see them, and the guard of their events. The store is the one in memory, unless a test is
//! about damage; `tests/store` checks all stores against one contract.

mod branches;
mod damaged_logs;
mod detached;
mod document;
mod ending;
mod error_codes;
mod files;
mod followers;
mod guard;
mod history;
mod interrupts;
mod limits;
mod lost;
mod queue;
mod queued;
mod quota;
mod repeated;
mod repeated_sequences;
mod resume;
mod sync;

use crate::support::{
    conversation::{
        ask, ask_and_leave, ask_detached, changed_options, puppet, refusal, said, types,
    },
    running::read_until,
};
