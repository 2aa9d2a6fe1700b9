//! Facts learned from the refusals and counts of a model's provider. Each fact belongs to the owner
//! or the thread of the request that taught it: no caller can change the requests of another.

use std::{
    hash::{BuildHasher as _, Hash, RandomState},
    sync::Arc,
    time::Duration,
};

use hashlink::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;

use agui_store::ThreadKey;

/// The lifetime of a fact. The full request is tried again after it, because providers change.
const LIFETIME: Duration = Duration::from_secs(3600);
/// Beyond these bounds, the least recently used facts of an owner, or the least recently used
/// owners, are forgotten. A forgotten fact costs one refused request.
const MAX_OWNERS: usize = 1000;
const MAX_FACTS_OF_OWNER: usize = 256;

/// The scope of a fact: the requests of an owner, or of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Owner,
    Thread,
}

/// Facts of one kind about one configured model. A request without a thread, such as a request of `check`, teaches no facts.
#[derive(Debug)]
pub(crate) struct Learned<V> {
    scope: Scope,
    /// Its keys are random, so that no caller can construct two subjects with one digest.
    hasher: RandomState,
    by_owner: Mutex<LruCache<Arc<str>, Facts<V>>>,
}

/// The facts of an owner by their digests, with the time when each was learned.
type Facts<V> = LruCache<u64, (V, Instant)>;

impl<V: Clone> Learned<V> {
    pub(crate) fn by(scope: Scope) -> Self {
        Self { scope, hasher: RandomState::new(), by_owner: Mutex::new(LruCache::new(MAX_OWNERS)) }
    }

    /// Returns the fact about a subject, such as a model's name.
    pub(crate) fn get(&self, thread: Option<&ThreadKey>, about: impl Hash) -> Option<V> {
        // The digest of a picture takes milliseconds, and most owners have no facts.
        let thread = thread.filter(|thread| self.by_owner.lock().contains_key(&*thread.owner))?;
        let digest = self.digest(thread, about);
        let mut by_owner = self.by_owner.lock();
        let (fact, learned_at) = by_owner.get_mut(&*thread.owner)?.get(&digest)?;
        (learned_at.elapsed() < LIFETIME).then(|| fact.clone())
    }

    pub(crate) fn set(&self, thread: Option<&ThreadKey>, about: impl Hash, fact: V) {
        let Some(thread) = thread else { return };
        let digest = self.digest(thread, about);
        let mut by_owner = self.by_owner.lock();
        let mut facts =
            by_owner.remove(&*thread.owner).unwrap_or_else(|| LruCache::new(MAX_FACTS_OF_OWNER));
        facts.insert(digest, (fact, Instant::now()));
        by_owner.insert(thread.owner.clone(), facts);
    }

    pub(crate) fn forget(&self, thread: Option<&ThreadKey>, about: impl Hash) {
        let Some(thread) = thread else { return };
        let digest = self.digest(thread, about);
        if let Some(facts) = self.by_owner.lock().get_mut(&*thread.owner) {
            facts.remove(&digest);
        }
    }

    fn digest(&self, thread: &ThreadKey, about: impl Hash) -> u64 {
        let id = (self.scope == Scope::Thread).then_some(&thread.id);
        self.hasher.hash_one((id, about))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(owner: &str, id: &str) -> ThreadKey {
        ThreadKey { owner: owner.into(), id: id.into() }
    }

    #[test]
    fn a_fact_belongs_to_its_owner_or_to_its_thread() {
        let (own, other, of_other) = (thread("a", "1"), thread("a", "2"), thread("b", "1"));
        for (scope, of_other_thread) in [(Scope::Owner, Some(7)), (Scope::Thread, None)] {
            let learned = Learned::by(scope);
            learned.set(Some(&own), "m", 7);
            assert_eq!(learned.get(Some(&own), "m"), Some(7));
            assert_eq!(learned.get(Some(&own), "n"), None);
            assert_eq!(learned.get(Some(&other), "m"), of_other_thread);
            assert_eq!((learned.get(Some(&of_other), "m"), learned.get(None, "m")), (None, None));
            learned.forget(Some(&own), "m");
            assert_eq!(learned.get(Some(&own), "m"), None);
        }
    }

    #[test]
    fn a_request_without_a_thread_teaches_nothing() {
        let learned = Learned::by(Scope::Owner);
        learned.set(None, "m", 7);
        assert_eq!(learned.by_owner.lock().len(), 0);
    }

    #[test]
    fn an_owner_with_many_facts_and_many_owners_push_out_only_the_oldest() {
        let learned = Learned::by(Scope::Owner);
        let (own, neighbour) = (thread("a", "1"), thread("b", "1"));
        learned.set(Some(&neighbour), 0_usize, ());
        (0..MAX_FACTS_OF_OWNER + 1).for_each(|about| learned.set(Some(&own), about, ()));
        assert_eq!(
            (learned.get(Some(&own), 0_usize), learned.get(Some(&own), 1_usize)),
            (None, Some(()))
        );
        assert_eq!(
            learned.get(Some(&neighbour), 0_usize),
            Some(()),
            "the facts of an owner take no other's place"
        );
        (1..MAX_OWNERS).for_each(|owner| {
            learned.set(Some(&thread(&format!("key:{owner}"), "1")), 0_usize, ())
        });
        assert_eq!(
            (learned.get(Some(&own), 1_usize), learned.get(Some(&neighbour), 0_usize)),
            (None, Some(()))
        );
        assert_eq!(learned.by_owner.lock().len(), MAX_OWNERS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fact_is_forgotten_after_an_hour() {
        let (learned, own) = (Learned::by(Scope::Owner), thread("a", "1"));
        learned.set(Some(&own), "m", 7);
        tokio::time::advance(LIFETIME - Duration::from_secs(1)).await;
        assert_eq!(learned.get(Some(&own), "m"), Some(7));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(learned.get(Some(&own), "m"), None);
    }
}
