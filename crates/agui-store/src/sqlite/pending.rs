//! The operations that wait for the writer, and the choice of those that one transaction takes.
//!
//! Owners are served in the [`GrantOrder`], at the cost of the bytes that they write. A transaction
//! takes a bounded number of bytes, or one larger operation. So an operation waits for one large
//! operation of other owners at most. An operation of 9 MB takes about 60 ms.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::Arc,
};

use crate::{ThreadNumber, read_permits::SERVER};
use agui_base::grant_order::GrantOrder;

/// Operations of a transaction.
pub(super) const MAX_GROUP: usize = 128;
/// Bytes of a transaction with several operations.
const MAX_GROUP_BYTES: u64 = 1 << 20;
/// The cost of an operation beside its bytes.
const OPERATION_COST: u64 = 1024;

/// The owner of an operation.
#[derive(Debug, Clone)]
pub(super) enum JobOwner {
    Server,
    Named(Arc<str>),
    /// The owner of a thread.
    OfThread(ThreadNumber),
}

impl From<&str> for JobOwner {
    fn from(owner: &str) -> Self {
        Self::Named(owner.into())
    }
}

/// Jobs in the queues of their owners, each with its bytes.
pub(super) struct Pending<J> {
    queues: HashMap<Arc<str>, VecDeque<(u64, J)>>,
    order: GrantOrder,
    server: Arc<str>,
}

impl<J> Pending<J> {
    pub(super) fn new() -> Self {
        Self { queues: HashMap::new(), order: GrantOrder::default(), server: SERVER.into() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Adds a job. `None` is the server.
    pub(super) fn push(&mut self, owner: Option<Arc<str>>, bytes: u64, job: J) {
        let owner = owner.unwrap_or_else(|| self.server.clone());
        if !self.queues.contains_key(&owner) {
            self.order.add(owner.clone());
        }
        self.queues.entry(owner).or_default().push_back((bytes, job));
    }

    /// Takes the jobs of the next transaction.
    pub(super) fn next_group(&mut self) -> Vec<J> {
        let (mut group, mut group_bytes) = (Vec::new(), 0);
        while group.len() < MAX_GROUP
            && let Some((at, owner)) = self.order.next(|_| true)
            && let Entry::Occupied(mut queue) = self.queues.entry(owner.clone())
        {
            let bytes = queue.get().front().map_or(0, |(bytes, _)| *bytes);
            group_bytes += bytes;
            if group_bytes > MAX_GROUP_BYTES && !group.is_empty() {
                break;
            }
            self.order.take(at);
            self.order.charge(&owner, bytes + OPERATION_COST);
            group.extend(queue.get_mut().pop_front().map(|(_, job)| job));
            if queue.get().is_empty() {
                queue.remove();
            } else {
                self.order.add(owner);
            }
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(pending: &mut Pending<String>, owner: &str, bytes: u64, jobs: usize) {
        (0..jobs).for_each(|_| pending.push(Some(owner.into()), bytes, owner.to_owned()));
    }

    #[test]
    fn a_transaction_takes_one_large_operation_and_small_ones_come_between_them() {
        let mut pending = Pending::new();
        push(&mut pending, "ann", 9 << 20, 12);
        let mut groups = Vec::new();
        while !pending.is_empty() {
            if groups.len() % 2 == 1 {
                push(&mut pending, "bob", 2000, 3);
            }
            groups.push(pending.next_group());
        }
        let large = groups.iter().filter(|group| group.contains(&"ann".to_owned()));
        assert!(large.clone().all(|group| group.len() == 1) && large.count() == 12, "{groups:?}");
        assert_eq!(groups[1], ["bob", "bob", "bob"], "what came during the first one");
        assert!(
            !groups.windows(3).any(|groups| groups.iter().flatten().all(|owner| owner == "ann")),
            "{groups:?}"
        );
    }

    #[test]
    fn small_operations_are_written_together_and_large_ones_are_not_passed_for_ever() {
        let mut pending = Pending::new();
        push(&mut pending, "ann", 9 << 20, 2);
        assert_eq!(pending.next_group(), ["ann"]);
        (0..400).for_each(|number| push(&mut pending, &number.to_string(), 100, 1));
        let groups: Vec<_> =
            std::iter::from_fn(|| Some(pending.next_group()).filter(|group| !group.is_empty()))
                .collect();
        let sizes: Vec<_> = groups.iter().map(Vec::len).collect();
        assert_eq!(
            sizes,
            [3, 1, 128, 128, 128, 13],
            "the fourth grant is for the owner that has waited the longest"
        );
    }
}
