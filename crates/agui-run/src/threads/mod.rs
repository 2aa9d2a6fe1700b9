//! The service over stored threads: list, view, search, edit, fork, import and export, feedback.
//!
//! [`Threads`] has the operations; each file adds one kind. Every operation names the owner, so one
//! principal never sees a thread of another.

mod copies;
mod edits;
mod error;
mod feedback;
mod messages;
mod recordings;
mod service;
mod views;

pub use self::{
    edits::ThreadEdit,
    error::ThreadError,
    messages::{MessageList, ThreadOverview},
    service::Threads,
    views::ThreadConnection,
};
