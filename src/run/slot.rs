//! The right to a run.

use tokio::sync::OwnedSemaphorePermit;

use super::quota::Share;

/// The right to one run. It is held until the run's last byte is sent or its end is stored, whichever comes last.
#[derive(Debug)]
#[allow(dead_code, reason = "held, not read")]
pub struct Slot {
    /// One of the server's runs.
    pub(super) permit: OwnedSemaphorePermit,
    /// One of the principal's runs, if those are counted.
    pub(super) share: Option<Share>,
    /// One of the server's detached runs, if it is one.
    pub(super) detached: Option<OwnedSemaphorePermit>,
}
