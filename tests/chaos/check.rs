//! The check after each round, when no fault is left: every thread is as its client knows it, and takes a new run.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::{
    model::{Existence, Thread, messages_of, text},
    worker::{Request, Worker},
};

/// The time in which a healed server must end the runs of a thread, end a new run, and return logs
/// and lists. Until then it may refuse requests, because it reconnects to the database. The time is
/// longer than a run's wait in the queue of its thread.
const HEALING_TIMEOUT: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(100);
/// The number of logs of a thread that are checked again after the next rounds.
const KEPT_LOGS: usize = 4;

impl Worker {
    /// Checks all threads of the worker, and takes what the server has for the truth of the next round.
    pub(crate) async fn check(&mut self) {
        for at in 0..self.threads.len() {
            self.check_thread(at).await;
        }
    }

    async fn check_thread(&mut self, at: usize) {
        let id = self.threads[at].id.clone();
        let Ok(view) = timeout(HEALING_TIMEOUT, self.settled_view(at)).await else {
            let state = format!("{:?}", self.client.view(&mut self.dice, &id).await);
            return self
                .client
                .report
                .violation(format!("{id} is stuck for {HEALING_TIMEOUT:?}: {state}"));
        };
        // A request that may take effect late has done so now.
        let thread = &mut self.threads[at];
        if thread.existence != Existence::Unknown {
            thread.is_settled = true;
        }
        thread.check_view(view.as_ref(), &self.client.report);
        let Some(view) = view else { return self.threads[at].clear() };
        self.adopt(at, &view);
        self.check_logs(at, &view).await;
        let open = view["interrupts"].as_array().cloned().unwrap_or_default();
        if !open.is_empty() {
            let request = self.resume(at, &open);
            self.must_succeed(at, request).await;
        }
        let request = self.say(at, "say");
        self.must_succeed(at, request).await;
        let view = self.settled_view(at).await;
        self.threads[at].check_view(view.as_ref(), &self.client.report);
        if let Some(view) = view {
            self.adopt(at, &view);
        }
        self.client.report.count("thread checks");
    }

    /// Waits until no run is running on a thread, and no earlier request can take effect.
    async fn settled_view(&mut self, at: usize) -> Option<Value> {
        let mut last = None;
        loop {
            let id = self.threads[at].id.clone();
            if let Ok(view) = self.client.view(&mut self.dice, &id).await {
                let is_idle = view.as_ref().is_none_or(|view| view.get("activeRunId").is_none());
                if is_idle && (self.threads[at].is_settled || last.as_ref() == Some(&view)) {
                    return view;
                }
                last = Some(view);
            }
            sleep(POLL).await;
        }
    }

    fn adopt(&mut self, at: usize, view: &Value) {
        let thread = &mut self.threads[at];
        thread.messages = view["messages"].as_array().cloned().unwrap_or_default();
        thread.interrupts = view["interrupts"].as_array().cloned().unwrap_or_default();
        (thread.existence, thread.is_settled, thread.unanswered) = (Existence::Present, true, None);
    }

    async fn check_logs(&mut self, at: usize, view: &Value) {
        let thread = &mut self.threads[at];
        thread.runs.retain(|_, facts| facts.is_detached);
        while thread.runs.len() > KEPT_LOGS {
            thread.runs.pop_first();
        }
        let thread = &self.threads[at];
        for run in thread.runs.keys() {
            let read = async {
                loop {
                    let log = self
                        .client
                        .follow(&mut self.dice, &thread.id, run, 0, Default::default())
                        .await;
                    match log.filter(|log| log.is_complete) {
                        Some(log) => return log,
                        None => sleep(POLL).await,
                    }
                }
            };
            let Ok(log) = timeout(HEALING_TIMEOUT, read).await else {
                self.client
                    .report
                    .violation(format!("the log of {run} of {} cannot be read", thread.id));
                continue;
            };
            thread.check_log(run, &log.events, &self.client.report);
            self.client.report.count("log checks");
            for made in messages_of(&log.events) {
                let stored = view["messages"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|it| it["id"] == made["id"]);
                self.client.report.expect(
                    stored.is_none_or(|stored| stored["content"] == made["content"]),
                    || format!("{}: the log of {run} has {made}, the thread {stored:?}", thread.id),
                );
            }
        }
    }

    /// Sends a request until the server responds with events.
    async fn must_succeed(&mut self, at: usize, request: Request) {
        let (begin, input) = (Instant::now(), request.input.clone());
        let run = async {
            loop {
                let terminal = self.run(at, request.clone()).await;
                if self.threads[at].unanswered.take().is_none() {
                    return terminal;
                }
                sleep(POLL).await;
            }
        };
        let terminal = timeout(HEALING_TIMEOUT, run).await;
        let is_success =
            matches!(&terminal, Ok(Some(terminal)) if terminal["outcome"]["type"] == "success");
        self.client.report.expect(is_success, || {
            format!(
                "after {:?} without faults the run {input} ended with {terminal:?}",
                begin.elapsed()
            )
        });
    }
}

/// Checks that the list of a principal has its threads, each once, and no others.
pub(crate) async fn check_list(workers: &mut [Worker]) {
    let Some(first) = workers.first_mut() else { return };
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/threads?limit=20{cursor}");
        let read = async {
            loop {
                match first.client.ask(&mut first.dice, "GET", &path).await {
                    Ok((200, page)) => return page,
                    _ => sleep(POLL).await,
                }
            }
        };
        let Ok(page) = timeout(HEALING_TIMEOUT, read).await else {
            return first.client.report.violation(format!("{path} does not return the threads"));
        };
        listed.extend(
            page["threads"]
                .as_array()
                .unwrap()
                .iter()
                .map(|thread| text(&thread["threadId"]).to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let is_present = |thread: &&Thread| thread.existence == Existence::Present;
    let threads = workers.iter().flat_map(|worker| &worker.threads);
    let expected: BTreeSet<_> =
        threads.filter(is_present).map(|thread| thread.id.clone()).collect();
    let found: BTreeSet<_> = listed.iter().cloned().collect();
    workers[0].client.report.expect(found == expected && found.len() == listed.len(), || {
        format!(
            "the list of the principal {} is {listed:?}, not {expected:?}",
            workers[0].client.principal
        )
    });
}
