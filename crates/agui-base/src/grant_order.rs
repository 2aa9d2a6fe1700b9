//! The order in which waiting owners get grants: the owner that has cost the least is next.
//!
//! The cost of an owner is what it has used, in a unit of the caller, such as time. It is halved
//! every [`HALF_LIFE`]. The cost of an unknown owner is the average of all others. So an owner that
//! seldom asks waits for the grant that is in use, and not for a round of all others: behind 199
//! owners with searches of 250 ms it waits for one of these in place of 24. Every
//! [`OLDEST_EVERY`]th grant is for the owner that has waited the longest, so newcomers delay no
//! owner forever.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

const HALF_LIFE: Duration = Duration::from_secs(60);
const OLDEST_EVERY: u32 = 4;
/// Owners with a known cost. The one nearest to the average is forgotten first: it loses the least.
const MAX_OWNERS: usize = 4096;

/// The waiting owners, and the costs of owners.
#[derive(Debug)]
pub struct GrantOrder {
    /// Starts with the owner that has waited the longest.
    waiting: VecDeque<Arc<str>>,
    costs: HashMap<Arc<str>, u64>,
    /// The sum of the costs.
    total: u64,
    halved_at: Instant,
    /// Counts the grants since the last one for the owner that had waited the longest.
    passed: u32,
}

impl Default for GrantOrder {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            costs: HashMap::new(),
            total: 0,
            halved_at: Instant::now(),
            passed: 0,
        }
    }
}

impl GrantOrder {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds an owner that does not wait yet.
    pub fn add(&mut self, owner: Arc<str>) {
        self.waiting.push_back(owner);
    }

    /// Returns the next owner that may have a grant, with its place.
    pub fn next(&self, mut may_have: impl FnMut(&str) -> bool) -> Option<(usize, Arc<str>)> {
        let mut of_all = self.waiting.iter().enumerate().filter(|(_, owner)| may_have(owner));
        let next = if self.passed + 1 >= OLDEST_EVERY {
            of_all.next()
        } else {
            let average = self.average();
            of_all.min_by_key(|(_, owner)| match self.costs.get(*owner) {
                Some(cost) => (*cost, true),
                None => (average, false),
            })
        };
        next.map(|(at, owner)| (at, owner.clone()))
    }

    /// Removes the owner at this place, because it gets a grant.
    pub fn take(&mut self, at: usize) {
        // The owners before it may have no grant now, because they have their share.
        let is_of_oldest = at == 0 || self.passed + 1 >= OLDEST_EVERY;
        self.passed = if is_of_oldest { 0 } else { self.passed + 1 };
        self.waiting.remove(at);
    }

    /// Adds to the cost of an owner.
    pub fn charge(&mut self, owner: &Arc<str>, cost: u64) {
        let halvings = self.halved_at.elapsed().as_secs() / HALF_LIFE.as_secs();
        if halvings > 0 {
            self.halved_at = Instant::now();
            self.costs.retain(|_, cost| {
                *cost = cost
                    .checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX))
                    .unwrap_or_default();
                *cost > 0
            });
            self.total = self.costs.values().fold(0, |sum, cost| sum.saturating_add(*cost));
        }
        if cost == 0 {
            return;
        }
        if self.costs.len() >= MAX_OWNERS && !self.costs.contains_key(owner) {
            self.forget_one();
        }
        let of_owner = self.costs.entry(owner.clone()).or_default();
        *of_owner = of_owner.saturating_add(cost);
        self.total = self.total.saturating_add(cost);
    }

    fn average(&self) -> u64 {
        self.total / (self.costs.len() as u64).max(1)
    }

    fn forget_one(&mut self) {
        let average = self.average();
        let nearest = self.costs.iter().min_by_key(|(_, cost)| cost.abs_diff(average));
        if let Some(owner) = nearest.map(|(owner, _)| owner.clone()) {
            let cost = self.costs.remove(&owner).unwrap_or_default();
            self.total = self.total.saturating_sub(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(grants: &mut GrantOrder) -> Vec<Arc<str>> {
        let next = || {
            grants.next(|_| true).map(|(at, owner)| {
                grants.take(at);
                owner
            })
        };
        std::iter::from_fn(next).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_cost_the_least_goes_first_until_the_costs_are_forgotten() {
        let mut grants = GrantOrder::default();
        let [ann, bob, cat]: [Arc<str>; 3] = ["ann", "bob", "cat"].map(Arc::from);
        grants.charge(&ann, 100);
        grants.charge(&bob, 10);
        let all = |grants: &mut GrantOrder| {
            [&ann, &bob, &cat].into_iter().cloned().for_each(|owner| grants.add(owner));
            order(grants).join(" ")
        };
        assert_eq!(all(&mut grants), "bob cat ann", "cat is taken to have cost 55");
        tokio::time::advance(5 * HALF_LIFE).await;
        grants.charge(&"cat".into(), 1);
        assert_eq!(all(&mut grants), "cat bob ann", "10 was halved five times, and is unknown");
        tokio::time::advance(5 * HALF_LIFE).await;
        grants.charge(&"cat".into(), 1);
        assert_eq!(all(&mut grants), "ann bob cat", "all cost the same");
    }

    #[test]
    fn one_that_costs_much_is_passed_by_three_at_most() {
        let mut grants = GrantOrder::default();
        grants.charge(&"ann".into(), 100);
        grants.charge(&"bob".into(), 1);
        grants.add("ann".into());
        (0..9).for_each(|number| grants.add(number.to_string().into()));
        let order = order(&mut grants);
        assert_eq!(order.iter().position(|owner| &**owner == "ann"), Some(3), "{order:?}");
    }

    #[test]
    fn an_owner_that_may_have_no_grant_leaves_the_order_of_the_others() {
        let mut grants = GrantOrder::default();
        let names: Vec<Arc<str>> = (0..9).map(|number| number.to_string().into()).collect();
        grants.add("ann".into());
        for (cost, name) in (1..).zip(names.iter().rev()) {
            grants.charge(name, cost);
        }
        names.iter().for_each(|name| grants.add(name.clone()));
        let next = || {
            grants.next(|owner| owner != "ann").map(|(at, owner)| {
                grants.take(at);
                owner
            })
        };
        let order: Vec<_> = std::iter::from_fn(next).collect();
        assert_eq!(order.join(" "), "8 7 6 0 5 4 3 1 2", "one of four is the oldest");
    }

    #[test]
    fn the_costs_of_a_bounded_number_of_owners_are_known() {
        let mut grants = GrantOrder::default();
        grants.charge(&"ann".into(), 100);
        (0..3 * MAX_OWNERS).for_each(|number| grants.charge(&number.to_string().into(), 1));
        assert_eq!(grants.costs.len(), MAX_OWNERS);
        assert_eq!(grants.costs.get("ann"), Some(&100));
    }
}
