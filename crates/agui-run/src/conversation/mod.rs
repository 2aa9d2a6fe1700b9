//! What the agent gets: the stored branch, the client's messages and its replies to interrupts become one conversation.

pub(crate) mod branch;
pub(crate) mod decide;
pub(crate) mod decided;
pub(crate) mod ids;
pub(crate) mod plan;
pub(crate) mod resume;
pub(crate) mod snapshots;
pub(crate) mod title;
