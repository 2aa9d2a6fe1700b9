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
    /// The longest time that a read takes. A longer one is interrupted.
    pub(super) const fn time_limit(self) -> Duration {
        match self {
            Self::Page | Self::Search => Duration::from_secs(5),
            Self::Thread => Duration::from_secs(30),
        }
    }
}

pub(super) type ReadPlace = SharedPlace<Arc<str>>;

/// The places for reads. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct ReadPlaces {
    pages: Arc<FairShare<Arc<str>>>,
    threads: Arc<FairShare<Arc<str>>>,
    searches: Arc<FairShare<Arc<str>>>,
}

const PAGE_PLACES: usize = 4;
/// Few, because a thread can take much memory.
const THREAD_PLACES: usize = 2;
const SEARCH_PLACES: usize = 2;

impl ReadPlaces {
    pub(super) fn new() -> Self {
        let [pages, threads, searches] = [PAGE_PLACES, THREAD_PLACES, SEARCH_PLACES].map(FairShare::new);
        Self { pages, threads, searches }
    }

    /// Waits for a place. Without authentication all clients are one owner, which gets all places.
    pub(super) async fn take(&self, kind: ReadKind, owner: &str) -> ReadPlace {
        let (places, number) = match kind {
            ReadKind::Page => (&self.pages, PAGE_PLACES),
            ReadKind::Thread => (&self.threads, THREAD_PLACES),
            ReadKind::Search => (&self.searches, SEARCH_PLACES),
        };
        let share = if owner == ThreadKey::ANONYMOUS { number } else { number / 2 };
        places.take(&owner.into(), share).await
    }
}
