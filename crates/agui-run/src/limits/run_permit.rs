//! [`RunPermit`]: the right to one run.

use super::memory::RunMemory;
use crate::control::LiveGuard;
use agui_base::permits::Permit;

/// The right to one run. It is held until the run's last byte is sent or its end is stored,
/// whichever comes last.
#[must_use = "dropping a permit gives it back"]
pub struct RunPermit {
    #[allow(dead_code, reason = "held, not read")]
    pub(crate) concurrent: Permit,
    pub(crate) detached: Option<Permit>,
    /// The run's entry among the live runs, which a shutdown stops and waits for.
    pub live: LiveGuard,
    /// The memory of the run.
    pub memory: Option<RunMemory>,
}
