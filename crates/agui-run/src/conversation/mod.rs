//! The agent's input: one conversation of the stored branch, the client's messages and its replies
//! to interrupts.

pub(crate) mod answered_interrupts;
pub(crate) mod asked;
pub(crate) mod branch;
pub(crate) mod ids;
pub(crate) mod match_branch;
pub(crate) mod plan;
pub(crate) mod repeated;
pub(crate) mod resume;
pub(crate) mod snapshots;
pub(crate) mod title;
