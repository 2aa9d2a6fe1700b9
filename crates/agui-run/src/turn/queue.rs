//! The runs on each thread within this process: one at a time, first come, first served.
//!
//! Between processes the lease in the store decides: the run that has the turn here takes the
//! lease.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::live_run::{LiveRun, LiveStage, RunClient, RunTrigger};
use crate::{
    control::{RunControl, Stop},
    conversation::asked::RequestDigest,
    limits::start_error::StartError,
};
use agui_protocol::RunId;
use agui_store::ThreadKey;

/// The runs of this process by thread. The first one of a thread has the turn, the others are
/// queued.
#[derive(Debug, Default)]
pub struct ThreadQueue(Mutex<HashMap<ThreadKey, Vec<Arc<LiveRun>>>>);

/// A request as the queue sees it.
pub(crate) struct Arrival<'a> {
    pub(crate) key: &'a ThreadKey,
    pub(crate) run_id: &'a RunId,
    pub(crate) asked: Option<&'a RequestDigest>,
    pub(crate) trigger: RunTrigger,
    /// True if the client asks for another answer to the same messages.
    pub(crate) regenerates: bool,
    pub(crate) control: &'a Arc<RunControl>,
}

/// The result of an arrival.
#[derive(Debug)]
pub(crate) enum Entered {
    Place(RunPlace),
    /// The same request has a run here.
    Same(Arc<LiveRun>),
}

/// The place of a run in the queue until its end. Dropping it gives the turn to the next run.
#[derive(Debug)]
pub struct RunPlace {
    queue: Arc<ThreadQueue>,
    key: ThreadKey,
    pub(crate) run: Arc<LiveRun>,
    /// The request of the run is its first client, so that another one that leaves does not end the run.
    pub(super) client: Option<RunClient>,
}

impl ThreadQueue {
    /// Enters a run behind at most `max_queued` queued ones, unless the same request is here.
    ///
    /// # Errors
    /// [`StartError::RunIsRunning`] if the id belongs to another request that waits or runs, [`StartError::QueueFull`], or
    /// [`StartError::ThreadIsBusy`] if `max_queued` is 0.
    pub(crate) fn enter(
        self: &Arc<Self>,
        arrival: &Arrival<'_>,
        max_queued: usize,
    ) -> Result<Entered, StartError> {
        let Arrival { key, run_id, asked, trigger, regenerates, control } = arrival;
        let mut threads = self.0.lock();
        let runs = threads.entry((*key).clone()).or_default();
        // A page whose connection was lost asks again under a new id.
        if !*regenerates
            && let Some(asked) = asked
            && let Some(run) = runs.first().filter(|run| run.takes_alias(asked, run_id))
        {
            return Ok(Entered::Same(run.clone()));
        }
        for run in runs.iter().filter(|run| run.is_called(run_id)) {
            if asked.is_some() && run.asked.as_ref() == *asked {
                return Ok(Entered::Same(run.clone()));
            }
            // An ending run is waited for, as by any message. A reply waits even for a queued message.
            if *trigger == RunTrigger::Message && run.stage() < LiveStage::Left {
                return Err(StartError::RunIsRunning);
            }
        }
        if runs.len() > max_queued {
            return Err(if max_queued == 0 {
                StartError::ThreadIsBusy
            } else {
                StartError::QueueFull
            });
        }
        let run = LiveRun::new((*run_id).clone(), asked.cloned(), *trigger, (*control).clone());
        let run = Arc::new(run);
        match runs.first() {
            Some(first) => first.note_waiter(),
            None => run.enter(LiveStage::HasTurn),
        }
        runs.push(run.clone());
        Ok(Entered::Place(RunPlace::new(self, key, run)))
    }

    /// Enters a run that has the lease already, before all others. A run that has the turn then
    /// waits for the lease.
    pub(crate) fn enter_first(
        self: &Arc<Self>,
        key: &ThreadKey,
        run_id: &RunId,
        asked: Option<RequestDigest>,
        control: &Arc<RunControl>,
    ) -> RunPlace {
        let run = LiveRun::new(run_id.clone(), asked, RunTrigger::Message, control.clone());
        let run = Arc::new(run);
        run.enter(LiveStage::HasTurn);
        self.0.lock().entry(key.clone()).or_default().insert(0, run.clone());
        RunPlace::new(self, key, run)
    }

    /// Returns the running run of a thread.
    pub(crate) fn running(&self, key: &ThreadKey) -> Option<Arc<LiveRun>> {
        self.0.lock().get(key)?.first().filter(|run| run.has_begun()).cloned()
    }

    pub(crate) fn all_running(&self) -> Vec<Arc<LiveRun>> {
        let threads = self.0.lock();
        threads
            .values()
            .filter_map(|runs| runs.first().filter(|run| run.has_begun()).cloned())
            .collect()
    }

    /// Returns whether a queued run may supersede the one that has the turn.
    pub(crate) fn has_superseding(&self, key: &ThreadKey) -> bool {
        let is_superseding = |run: &Arc<LiveRun>| run.trigger == RunTrigger::Message;
        self.0.lock().get(key).is_some_and(|runs| runs.iter().skip(1).any(is_superseding))
    }

    /// Returns the number of queued runs in this process.
    pub(crate) fn queued(&self) -> usize {
        self.0.lock().values().map(|runs| runs.len().saturating_sub(1)).sum()
    }

    /// Cancels the newest run of this id, running or queued. Returns whether there is one.
    pub(crate) fn cancel(&self, key: &ThreadKey, run_id: &RunId) -> bool {
        self.cancel_if(key, run_id, |_| true)
    }

    /// Cancels the newest run of this id, unless it is queued.
    pub(crate) fn cancel_begun(&self, key: &ThreadKey, run_id: &RunId) -> bool {
        self.cancel_if(key, run_id, LiveRun::has_begun)
    }

    fn cancel_if(
        &self,
        key: &ThreadKey,
        run_id: &RunId,
        is_chosen: impl FnOnce(&LiveRun) -> bool,
    ) -> bool {
        let chosen = self.find(key, run_id).filter(|run| is_chosen(run));
        chosen.map(|run| run.control.stop(Stop::Cancel)).is_some()
    }

    /// Returns the newest run of this id that is here.
    pub(crate) fn find(&self, key: &ThreadKey, run_id: &RunId) -> Option<Arc<LiveRun>> {
        let threads = self.0.lock();
        threads.get(key)?.iter().rfind(|run| run.is_called(run_id)).cloned()
    }

    /// Returns the run that has the turn.
    pub(crate) fn first(&self, key: &ThreadKey) -> Option<Arc<LiveRun>> {
        self.0.lock().get(key)?.first().cloned()
    }

    /// Stops the queued runs of a thread that was deleted.
    pub(crate) fn stop_queued_of_deleted(&self, key: &ThreadKey) {
        let threads = self.0.lock();
        let waiting = threads.get(key).into_iter().flatten().filter(|run| !run.has_begun());
        waiting.for_each(|run| run.control.stop(Stop::ThreadDeleted));
    }

    /// Stops all runs that have not begun, whose requests then end before the server does.
    pub(crate) fn stop_queued(&self) {
        let threads = self.0.lock();
        let waiting = threads.values().flatten().filter(|run| !run.has_begun());
        waiting.for_each(|run| run.control.stop(Stop::Shutdown));
    }
}

impl RunPlace {
    fn new(queue: &Arc<ThreadQueue>, key: &ThreadKey, run: Arc<LiveRun>) -> Self {
        let client = Some(RunClient::of(&run));
        Self { queue: queue.clone(), key: key.clone(), run, client }
    }
}

impl Drop for RunPlace {
    fn drop(&mut self) {
        let mut threads = self.queue.0.lock();
        self.run.enter(LiveStage::Over);
        let Some(runs) = threads.get_mut(&self.key) else { return };
        runs.retain(|run| !Arc::ptr_eq(run, &self.run));
        if let Some(lease) = self.run.lease() {
            runs.iter().for_each(|queued| queued.note_came_during(lease.run));
        }
        match runs.first() {
            Some(next) => next.enter(LiveStage::HasTurn),
            None => drop(threads.remove(&self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use agui_agent::host::Forwarded;
    use agui_protocol::{Message, RunAgentInput};
    use agui_store::{Lease, RunNumber, ThreadNumber};

    fn key(thread: &str) -> ThreadKey {
        ThreadKey { owner: ThreadKey::ANONYMOUS.into(), id: thread.into() }
    }

    fn asked(text: &str) -> RequestDigest {
        let input = RunAgentInput::new("t", "r", vec![Message::user("m", text)]);
        RequestDigest::of("a", &input, &Forwarded::new([])).unwrap()
    }

    fn enter(
        queue: &Arc<ThreadQueue>,
        key: &ThreadKey,
        run: &str,
        (asked, trigger): (Option<&RequestDigest>, RunTrigger),
        max_queued: usize,
    ) -> Result<Entered, StartError> {
        let (run_id, control) = (run.into(), Arc::default());
        let regenerates = false;
        let arrival =
            Arrival { key, run_id: &run_id, asked, trigger, regenerates, control: &control };
        queue.enter(&arrival, max_queued)
    }

    fn place(entered: Result<Entered, StartError>) -> RunPlace {
        match entered.unwrap() {
            Entered::Place(place) => place,
            Entered::Same(run) => panic!("{run:?} is another request"),
        }
    }

    fn has_turn(place: &RunPlace) -> bool {
        place.run.reached(LiveStage::HasTurn).now_or_never().is_some()
    }

    #[test]
    fn runs_of_a_thread_take_turns_in_order() {
        let queue = Arc::new(ThreadQueue::default());
        let message = (None, RunTrigger::Message);
        let enter_2 = |run: &str| enter(&queue, &key("t"), run, message, 2);
        let first = place(enter_2("1"));
        assert!(has_turn(&first));
        let second = place(enter_2("2"));
        for run in ["1", "2"] {
            assert!(matches!(enter_2(run), Err(StartError::RunIsRunning)));
        }
        let third = place(enter_2("3"));
        assert!(matches!(enter_2("4"), Err(StartError::QueueFull)));
        let busy = enter(&queue, &key("t"), "4", message, 0);
        assert!(matches!(busy, Err(StartError::ThreadIsBusy)));
        assert!(queue.has_superseding(&key("t")) && !queue.has_superseding(&key("other")));
        let other = ThreadKey { owner: "key:b".into(), ..key("t") };
        assert!(has_turn(&place(enter(&queue, &other, "1", message, 0))), "another owner's thread");

        assert!(!has_turn(&second));
        drop(first);
        assert!(!has_turn(&third) && has_turn(&second));
        drop(third);
        drop(second);
        assert!(queue.0.lock().is_empty());
    }

    #[test]
    fn the_same_request_finds_its_run_and_another_one_of_the_id_waits_only_for_an_ending_run() {
        let queue = Arc::new(ThreadQueue::default());
        let (pay, stop) = (asked("Pay"), asked("Stop"));
        let enter = |asked: &RequestDigest, trigger| {
            enter(&queue, &key("t"), "1", (Some(asked), trigger), 2)
        };
        let first = place(enter(&pay, RunTrigger::Message));
        assert!(
            matches!(enter(&pay, RunTrigger::Message), Ok(Entered::Same(run)) if Arc::ptr_eq(&run, &first.run))
        );
        assert!(matches!(enter(&stop, RunTrigger::Message), Err(StartError::RunIsRunning)));
        drop(place(enter(&stop, RunTrigger::Reply)));
        first.run.enter(LiveStage::Left);
        drop(place(enter(&stop, RunTrigger::Message)));
    }

    #[test]
    fn a_queued_run_can_be_cancelled_and_is_stopped_at_shutdown() {
        let queue = Arc::new(ThreadQueue::default());
        let enter = |run| place(enter(&queue, &key("t"), run, (None, RunTrigger::Message), 2));
        let (first, second, third) = (enter("1"), enter("2"), enter("3"));
        first
            .run
            .begun(Lease { thread: ThreadNumber(1), run: RunNumber(1), holder: "h".into() }, None);
        assert!(!queue.cancel(&key("t"), &"4".into()));
        assert!(queue.cancel(&key("t"), &"2".into()));
        queue.stop_queued();
        let stopped = [&first, &second, &third].map(|place| place.run.control.requested());
        assert_eq!(stopped, [None, Some(Stop::Cancel), Some(Stop::Shutdown)]);
    }

    #[test]
    fn a_running_run_takes_one_other_id_of_the_same_request_and_with_it_new_clients() {
        let queue = Arc::new(ThreadQueue::default());
        let (pay, other) = (asked("Pay"), asked("Other"));
        let enter =
            |run, asked| enter(&queue, &key("t"), run, (Some(asked), RunTrigger::Message), 9);
        let first = place(enter("1", &pay));
        drop(place(enter("2", &pay)));
        first
            .run
            .begun(Lease { thread: ThreadNumber(1), run: RunNumber(1), holder: "h".into() }, None);
        drop(place(enter("2", &other)));
        assert!(
            matches!(enter("3", &pay), Ok(Entered::Same(run)) if Arc::ptr_eq(&run, &first.run))
        );
        assert!(matches!(enter("3", &pay), Ok(Entered::Same(_))), "the same id again");
        drop(place(enter("4", &pay)));
        let new = RunClient::of(&first.run);
        let same = RunClient::of(&first.run);
        assert!(matches!(enter("3", &pay), Ok(Entered::Same(_))));
        drop(same);
        assert_eq!(first.run.control.requested(), None, "another client is left");
        drop(new);
        assert_eq!(first.run.control.requested(), Some(Stop::Left));
        assert!(queue.cancel(&key("t"), &"3".into()));
    }

    #[test]
    fn the_same_request_that_leaves_while_a_run_is_queued_does_not_end_it() {
        let queue = Arc::new(ThreadQueue::default());
        let mut first = place(enter(&queue, &key("t"), "1", (None, RunTrigger::Message), 2));
        drop(RunClient::of(&first.run));
        assert_eq!(first.run.control.requested(), None);
        first
            .run
            .begun(Lease { thread: ThreadNumber(1), run: RunNumber(1), holder: "h".into() }, None);
        drop(RunClient::of(&first.run));
        assert_eq!(first.run.control.requested(), None);
        first.client = None;
        assert_eq!(first.run.control.requested(), Some(Stop::Left));
    }

    #[test]
    fn the_last_client_that_leaves_ends_a_run_unless_it_continues() {
        for continues in [false, true] {
            let run = LiveRun::new("r".into(), None, RunTrigger::Message, Arc::default());
            let run = Arc::new(run);
            let clients = [RunClient::of(&run), RunClient::of(&run)];
            if continues {
                run.let_continue();
            }
            let [first, second] = clients;
            drop(first);
            assert_eq!(run.control.requested(), None);
            drop(second);
            assert_eq!(run.control.requested(), (!continues).then_some(Stop::Left));
        }
    }
}
