//! The places for reads of a database. One owner has at most half of each kind, so that its reads keep no other owner waiting.

use std::{sync::Arc, time::Duration};

use super::ThreadKey;
use crate::base::fair_share::{FairShare, SharedPlace};

/// The owner of the server's own reads, such as the search for lost runs.
pub(super) const SERVER: &str = "";

/// The kinds of reads, each of which has places of its own, so that a short read never waits for long ones.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadKind {
    /// A page, or a few rows.
    Page,
    /// All messages of a thread. An import counts as one of these.
    Thread,
    Search,
}

impl ReadKind {
    const fn places(self) -> usize {
        match self {
            Self::Page => 4,
            // Few, because a thread can take much memory.
            Self::Thread | Self::Search => 2,
        }
    }

    /// The longest time that a read takes. A longer one is interrupted.
    pub(super) const fn time_limit(self) -> Duration {
        match self {
            Self::Page | Self::Search => Duration::from_secs(5),
            Self::Thread => Duration::from_secs(30),
        }
    }
}

pub(super) type ReadPlace = SharedPlace<Arc<str>>;

/// The places for reads of each kind. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct ReadPlaces([Arc<FairShare<Arc<str>>>; 3]);

impl ReadPlaces {
    pub(super) fn new() -> Self {
        Self([ReadKind::Page, ReadKind::Thread, ReadKind::Search].map(|kind| FairShare::new(kind.places())))
    }

    /// Waits for a place. Without authentication all clients are one owner, which gets all places.
    pub(super) async fn take(&self, kind: ReadKind, owner: &str) -> ReadPlace {
        let share = if owner == ThreadKey::ANONYMOUS { kind.places() } else { kind.places() / 2 };
        self.0[kind as usize].take(&owner.into(), share).await
    }
}
