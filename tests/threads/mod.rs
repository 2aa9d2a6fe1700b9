//! Requests of clients for stored threads, over HTTP. The store is in memory; `tests/store` checks
//! all stores against one contract.

mod copies;
mod damaged;
mod deleted;
mod edits;
mod events;
mod feedback;
mod owners;
mod recording;
mod search;
mod titles;
mod view;

use crate::support::{
    conversation::{
        ask, ask_and_leave, ask_detached, changed_options, puppet, refusal, said, types,
    },
    running::read_until,
};
