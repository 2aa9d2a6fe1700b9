//! Changes of threads as they happen, for lists that keep themselves current.

use std::sync::Arc;

use super::{
    Threads,
    thread_event_hub::{Announcement, ThreadChange, ThreadEvent, ThreadEvents},
};
use crate::{agent::Principal, store::ThreadKey};

impl Threads {
    /// Reads the changes of a principal's threads from now on.
    pub fn follow_changes(self: &Arc<Self>, owner: Option<&Principal>) -> ThreadEvents {
        self.start_tasks();
        ThreadEvents { events: self.events.subscribe(Self::owner(owner)) }
    }

    /// Reports a change to the readers of this process and of all others.
    pub(super) fn publish(&self, key: &ThreadKey, change: ThreadChange) {
        self.events.send(&key.owner, ThreadEvent::Change(key.id.clone(), change));
        self.announce(&Announcement::Change { owner: key.owner.clone(), id: key.id.clone(), change });
    }

    /// Tells all readers, of this process and of all others, to read their lists again.
    pub(super) fn publish_missed(&self) {
        self.events.send_to_all(&ThreadEvent::Missed);
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
