//! The order in which owners get what they wait for: who has cost the least goes first.
//!
//! The cost of an owner is what it has used, in a unit of the caller, such as time. It is halved every [`HALF_LIFE`]. An owner
//! whose cost is unknown is taken to cost as much as the others do on average. So an owner that asks for little now and then waits
//! for the one that is served, and not for a round of all others, also not for their first one: behind 199 owners with searches
//! of 250 ms it waits for one of these in place of 24. Every [`OLDEST_EVERY`]th turn is that of the owner that has
//! waited the longest, so newcomers pass nobody for ever.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

const HALF_LIFE: Duration = Duration::from_secs(60);
const OLDEST_EVERY: u32 = 4;
/// The owners whose costs are known. The one whose cost is nearest to the average is forgotten first: it loses the least.
const MAX_OWNERS: usize = 4096;

/// The owners that wait, and what owners have cost.
#[derive(Debug)]
pub struct Turns {
    /// The one that has waited the longest first.
    waiting: VecDeque<Arc<str>>,
    costs: HashMap<Arc<str>, u64>,
    /// The sum of the costs.
    total: u64,
    halved_at: Instant,
    /// The turns since the last one of the owner that had waited the longest.
    passed: u32,
}

impl Default for Turns {
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

impl Turns {
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

    /// Returns the owner whose turn it is, of those that may have one, with its place.
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

    /// Ends the wait of the owner at a place.
    pub fn take(&mut self, at: usize) {
        // The owners before it may have no turn now, such as those at their share.
        let is_of_oldest = at == 0 || self.passed + 1 >= OLDEST_EVERY;
        self.passed = if is_of_oldest { 0 } else { self.passed + 1 };
        self.waiting.remove(at);
    }

    /// Adds to what an owner has cost.
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

    fn order(turns: &mut Turns) -> Vec<Arc<str>> {
        let next = || {
            turns.next(|_| true).map(|(at, owner)| {
                turns.take(at);
                owner
            })
        };
        std::iter::from_fn(next).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_cost_the_least_goes_first_until_the_costs_are_forgotten() {
        let mut turns = Turns::default();
        let [ann, bob, cat]: [Arc<str>; 3] = ["ann", "bob", "cat"].map(Arc::from);
        turns.charge(&ann, 100);
        turns.charge(&bob, 10);
        let all = |turns: &mut Turns| {
            [&ann, &bob, &cat].into_iter().cloned().for_each(|owner| turns.add(owner));
            order(turns).join(" ")
        };
        assert_eq!(all(&mut turns), "bob cat ann", "cat is taken to have cost 55");
        tokio::time::advance(5 * HALF_LIFE).await;
        turns.charge(&"cat".into(), 1);
        assert_eq!(all(&mut turns), "cat bob ann", "10 was halved five times, and is unknown");
        tokio::time::advance(5 * HALF_LIFE).await;
        turns.charge(&"cat".into(), 1);
        assert_eq!(all(&mut turns), "ann bob cat", "all cost the same");
    }

    #[test]
    fn one_that_costs_much_is_passed_by_three_at_most() {
        let mut turns = Turns::default();
        turns.charge(&"ann".into(), 100);
        turns.charge(&"bob".into(), 1);
        turns.add("ann".into());
        (0..9).for_each(|number| turns.add(number.to_string().into()));
        let order = order(&mut turns);
        assert_eq!(order.iter().position(|owner| &**owner == "ann"), Some(3), "{order:?}");
    }

    #[test]
    fn an_owner_that_may_have_no_turn_leaves_the_order_of_the_others() {
        let mut turns = Turns::default();
        let names: Vec<Arc<str>> = (0..9).map(|number| number.to_string().into()).collect();
        turns.add("ann".into());
        for (cost, name) in (1..).zip(names.iter().rev()) {
            turns.charge(name, cost);
        }
        names.iter().for_each(|name| turns.add(name.clone()));
        let next = || {
            turns.next(|owner| owner != "ann").map(|(at, owner)| {
                turns.take(at);
                owner
            })
        };
        let order: Vec<_> = std::iter::from_fn(next).collect();
        assert_eq!(order.join(" "), "8 7 6 0 5 4 3 1 2", "one of four is the oldest");
    }

    #[test]
    fn the_costs_of_a_bounded_number_of_owners_are_known() {
        let mut turns = Turns::default();
        turns.charge(&"ann".into(), 100);
        (0..3 * MAX_OWNERS).for_each(|number| turns.charge(&number.to_string().into(), 1));
        assert_eq!(turns.costs.len(), MAX_OWNERS);
        assert_eq!(turns.costs.get("ann"), Some(&100));
    }
}
