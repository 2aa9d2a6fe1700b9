//! Permits for reads of a database. One owner has at most half of each kind, so that its reads do
//! not delay other owners.

use std::{sync::Arc, time::Duration};

use agui_base::permits::{ANONYMOUS, Permit, Permits};

/// The owner of the server's own reads, such as the search for lost runs.
pub(super) const SERVER: &str = "";

/// The kinds of reads. Each kind has permits of its own, so that a short read never waits for long
/// ones.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadKind {
    /// A page, or a few rows.
    Page,
    /// All messages of a thread. An import counts as one of these.
    Thread,
    Search,
}

impl ReadKind {
    const fn permits(self) -> usize {
        match self {
            Self::Page => 4,
            // Few, because a thread can take much memory.
            Self::Thread | Self::Search => 2,
        }
    }

    /// Time limit of a read. A longer read is interrupted.
    pub(super) const fn time_limit(self) -> Duration {
        match self {
            Self::Page | Self::Search => Duration::from_secs(5),
            Self::Thread => Duration::from_secs(30),
        }
    }
}

/// The permits for reads of each kind. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct ReadPermits([Arc<Permits>; 3]);

impl ReadPermits {
    pub(super) fn new() -> Self {
        let permits = |kind: ReadKind| Permits::new(kind.permits(), Some(kind.permits() / 2));
        Self([ReadKind::Page, ReadKind::Thread, ReadKind::Search].map(permits))
    }

    /// Waits for a permit.
    pub(super) async fn take(&self, kind: ReadKind, owner: &str) -> Permit {
        self.0[kind as usize].take(&owner.into(), 1).await
    }

    /// Waits for all permits of a kind: no read of this kind runs until they are given back.
    pub(super) async fn take_all(&self, kind: ReadKind) -> Permit {
        // Only this owner may have all permits.
        self.0[kind as usize].take(&ANONYMOUS.into(), kind.permits()).await
    }
}
