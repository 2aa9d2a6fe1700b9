//! [`Slot`]: the right to one run.

use super::{memory::RunMemory, owner_limit::OwnerPermit};
use crate::run::control::LiveGuard;

/// The right to one run, and its place among the live runs, which a shutdown stops and waits for. It is held until the
/// run's last byte is sent or its end is stored, whichever comes last.
#[must_use = "dropping a slot gives it back"]
pub(crate) struct Slot {
    #[allow(dead_code, reason = "held, not read")]
    pub(crate) permit: OwnerPermit,
    pub(crate) detached: Option<OwnerPermit>,
    pub(crate) live: LiveGuard,
    /// `None` for a run that is taken over.
    pub(crate) memory: Option<RunMemory>,
}
