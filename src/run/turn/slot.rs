//! [`Slot`]: the right to one run.

use tokio::sync::OwnedSemaphorePermit;

use super::{memory::RunMemory, quota::QuotaShare};
use crate::run::drive::control::LiveGuard;

/// The right to one run, and its place among the live runs, which a shutdown stops and waits for. It is held until the
/// run's last byte is sent or its end is stored, whichever comes last.
#[must_use = "dropping a slot gives it back"]
#[derive(Debug)]
pub(crate) struct Slot {
    #[allow(dead_code, reason = "held, not read")]
    pub(crate) permit: OwnedSemaphorePermit,
    pub(crate) share: Option<QuotaShare>,
    pub(crate) detached: Option<OwnedSemaphorePermit>,
    pub(crate) live: LiveGuard,
    /// `None` for a run that is taken over.
    pub(crate) memory: Option<RunMemory>,
}
