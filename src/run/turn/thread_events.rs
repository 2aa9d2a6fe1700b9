//! Changes of threads as they happen, for lists that keep themselves current.

use super::thread_runs::ThreadRuns;
use crate::run::events::thread_event_hub::{Announcement, ThreadChange};
use crate::store::ThreadKey;

impl ThreadRuns {
    /// Reports a change to the readers of this process and of all others.
    pub(crate) fn publish(&self, key: &ThreadKey, change: ThreadChange) {
        self.events.send(key, change);
        self.announce(&Announcement::Change { owner: key.owner.clone(), id: key.id.clone(), change });
    }

    /// Tells all readers, of this process and of all others, to read their lists again.
    pub(crate) fn publish_missed(&self) {
        self.events.send_missed();
        self.announce(&Announcement::Missed);
    }

    fn announce(&self, announcement: &Announcement) {
        if let Some(shared) = self.store.shared()
            && let Ok(json) = serde_json::to_string(announcement)
        {
            shared.announce(json);
        }
    }
}
