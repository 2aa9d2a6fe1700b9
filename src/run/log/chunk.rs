//! Consecutive events of a log, shared by those who follow it.

use std::sync::Arc;

/// Consecutive events of a run.
#[derive(Debug, Clone)]
pub struct LogChunk {
    first: u64,
    events: Arc<[String]>,
    /// How many of them to pass over.
    skip: usize,
}

impl LogChunk {
    /// Events, each as one line of JSON; the first has this number. A run's events are numbered from 1.
    pub(super) fn new(first: u64, events: Vec<String>) -> Self {
        Self { first, events: events.into(), skip: 0 }
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        (self.first + self.events.len() as u64).saturating_sub(1)
    }

    /// The events with their numbers, each as one line of JSON.
    pub fn events(&self) -> impl Iterator<Item = (u64, &str)> {
        (self.first..).zip(self.events.iter().map(String::as_str)).skip(self.skip)
    }

    /// Returns whether it has the event that follows the one with number `after`.
    pub(super) fn continues(&self, after: u64) -> bool {
        self.first <= after + 1 && self.last() > after
    }

    /// The number of bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        self.events.iter().map(String::len).sum()
    }

    /// Passes over the events up to the one with number `after`.
    pub(super) fn after(mut self, after: u64) -> Self {
        self.skip = usize::try_from((after + 1).saturating_sub(self.first)).unwrap_or(usize::MAX);
        self
    }
}
