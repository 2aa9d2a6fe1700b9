//! The clients' knowledge of their threads, and the check of a server against it. Uses no code of
//! the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use serde_json::{Value, json};

use crate::http::Event;

/// The broken promises, and the counters of the report.
#[derive(Debug, Default)]
pub(crate) struct Report {
    violations: Mutex<Vec<String>>,
    counts: Mutex<BTreeMap<String, usize>>,
}

/// The longest text of a violation, in characters.
const MAX_TEXT: usize = 4000;

impl Report {
    pub(crate) fn violation(&self, what: String) {
        let what: String = what.chars().take(MAX_TEXT).collect();
        println!("VIOLATION: {what}");
        self.violations.lock().unwrap().push(what);
    }

    pub(crate) fn expect(&self, condition: bool, what: impl FnOnce() -> String) {
        if !condition {
            self.violation(what());
        }
    }

    pub(crate) fn count(&self, what: &str) {
        *self.counts.lock().unwrap().entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> String {
        let counts = self.counts.lock().unwrap();
        counts.iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existence {
    /// The thread was never used, or its deletion was acknowledged.
    Absent,
    Present,
    /// The outcome of a request that would create or delete the thread is unknown.
    Unknown,
}

/// A thread as its client knows it.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) id: String,
    pub(crate) existence: Existence,
    /// Messages that must be on the thread's branch, in this order. Other messages may be between them.
    pub(crate) messages: Vec<Value>,
    /// The interrupts of the last run.
    pub(crate) interrupts: Vec<Value>,
    /// False after a request with an unknown outcome: it may still take effect, after later requests.
    pub(crate) is_settled: bool,
    /// The request whose outcome is unknown.
    pub(crate) unanswered: Option<Value>,
    pub(crate) runs: BTreeMap<String, RunFacts>,
}

/// The facts that a client has read of a run.
#[derive(Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) is_detached: bool,
    pub(crate) terminal: Option<Value>,
    /// The events with numbers, as text.
    pub(crate) numbered: BTreeMap<u64, String>,
    /// The first events, without snapshots, from a response without numbers.
    pub(crate) first: Vec<String>,
}

impl RunFacts {
    pub(crate) fn learn(&mut self, events: &[Event]) {
        // A snapshot for this client alone has the number of the event before it.
        let of_log = events.iter().filter(|event| !event.is_snapshot());
        self.numbered.extend(of_log.filter_map(|event| Some((event.number?, event.json.clone()))));
        let unnumbered =
            events.iter().filter(|event| event.number.is_none() && !event.is_snapshot());
        let unnumbered: Vec<_> = unnumbered.map(|event| event.json.clone()).collect();
        if unnumbered.len() > self.first.len() {
            self.first = unnumbered;
        }
        self.terminal =
            events.last().filter(|event| event.is_terminal()).map(|event| event.value.clone());
    }
}

/// The codes with which a run ends for its client while the stored end may be another one.
const OWN_ERRORS: [&str; 5] =
    ["store_unavailable", "lease_lost", "server_shutdown", "server_lost", "thread_deleted"];

/// True if the run's end is stored as its terminal event says.
pub(crate) fn is_stored_end(terminal: &Value) -> bool {
    terminal["type"] == "RUN_FINISHED" || !OWN_ERRORS.iter().any(|code| terminal["code"] == *code)
}

/// Returns whether the numbers of a log's events follow each other. The scripts set no marks, but each continuation does:
/// at most one before it, and one after it.
pub(crate) fn is_gapless(after: u64, events: &[Event], is_whole: bool) -> bool {
    let (mut last, mut missing) = (after, 0);
    for number in events.iter().filter_map(|event| event.number) {
        let Some(gap) = number.checked_sub(last + 1) else { return false };
        missing += gap;
        last = number;
    }
    let continuations = events.iter().filter(|event| event.is_continuation()).count() as u64;
    // A part of a log can begin and end between a mark and its continuation.
    missing <= 2 * continuations + if is_whole { 0 } else { 2 }
}

/// Returns the messages and results that a run has made.
pub(crate) fn messages_of(events: &[Event]) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    for event in events {
        let id = &event.value["messageId"];
        match event.name() {
            "TEXT_MESSAGE_START" => messages.push(json!({ "id": id, "role": "assistant", "content": "" })),
            "TEXT_MESSAGE_CONTENT" => {
                if let Some(message) = messages.iter_mut().find(|message| message["id"] == *id) {
                    let text = format!("{}{}", text(&message["content"]), text(&event.value["delta"]));
                    message["content"] = text.into();
                }
            }
            "TOOL_CALL_RESULT" => messages.push(json!({
                "id": id, "role": "tool", "toolCallId": event.value["toolCallId"], "content": event.value["content"]
            })),
            // Takes back what a lost server has sent.
            "MESSAGES_SNAPSHOT" => {
                let kept = event.value["messages"].as_array().cloned().unwrap_or_default();
                messages.retain(|message| kept.iter().any(|it| it["id"] == message["id"]));
            }
            _ => {}
        }
    }
    messages.retain(|message| message["content"] != "");
    messages
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Thread {
    pub(crate) fn new(id: String) -> Self {
        Self {
            id,
            existence: Existence::Absent,
            messages: Vec::new(),
            interrupts: Vec::new(),
            is_settled: true,
            unanswered: None,
            runs: BTreeMap::new(),
        }
    }

    /// Forgets everything, after a deletion.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(std::mem::take(&mut self.id));
    }

    /// Checks the thread as the server returns it: `None` if there is no such thread.
    pub(crate) fn check_view(&self, view: Option<&Value>, report: &Report) {
        let id = &self.id;
        let Some(view) = view else {
            let is_allowed = self.existence != Existence::Present || !self.is_settled;
            return report
                .expect(is_allowed, || format!("the thread {id} is gone: {:?}", self.messages));
        };
        report.expect(self.existence != Existence::Absent || !self.is_settled, || {
            format!("the thread {id} exists after its deletion: {view}")
        });
        let branch = view["messages"].as_array().cloned().unwrap_or_default();
        let mut rest = branch.iter();
        for message in &self.messages {
            let is_same = |stored: &Value| {
                message.as_object().unwrap().iter().all(|(name, it)| stored[name] == *it)
            };
            // A result is moved to its call.
            let is_result = message["role"] == "tool";
            if !(if is_result { branch.iter().any(is_same) } else { rest.any(is_same) }) {
                report.violation(format!(
                    "the thread {id} lacks, or has in another place, {message}: {view}"
                ));
                break;
            }
        }
        let ids: BTreeSet<_> = branch.iter().map(|message| text(&message["id"])).collect();
        report.expect(ids.len() == branch.len(), || {
            format!("the thread {id} has a message twice: {view}")
        });
        let results: Vec<_> =
            branch.iter().filter_map(|message| message["toolCallId"].as_str()).collect();
        let calls: BTreeSet<_> = results.iter().collect();
        report.expect(calls.len() == results.len(), || {
            format!("the thread {id} has two results of a call: {view}")
        });
        self.check_runs(view["runs"].as_array().map(Vec::as_slice).unwrap_or_default(), report);
    }

    fn check_runs(&self, listed: &[Value], report: &Report) {
        let attempt = |run: &Value| (text(&run["runId"]).to_owned(), run["attempt"].as_u64());
        let ids: BTreeSet<_> = listed.iter().map(attempt).collect();
        report.expect(ids.len() == listed.len(), || {
            format!("{} lists an attempt twice: {listed:?}", self.id)
        });
        for (id, facts) in &self.runs {
            let (Some(terminal), Some(run)) =
                (&facts.terminal, listed.iter().find(|run| run["runId"] == **id))
            else {
                continue;
            };
            let status = match (terminal["type"].as_str(), terminal["outcome"]["type"].as_str()) {
                (Some("RUN_ERROR"), _) => "failed",
                (_, Some("interrupt")) => "interrupted",
                (_, Some("cancelled")) => "cancelled",
                _ => "finished",
            };
            let is_ended = run["status"] != "running";
            report
                .expect(is_ended && (!is_stored_end(terminal) || run["status"] == status), || {
                    format!("{}: the run ended with {terminal} and is listed as {run}", self.id)
                });
        }
    }

    /// Checks the whole log of an ended run.
    pub(crate) fn check_log(&self, run: &str, log: &[Event], report: &Report) {
        let facts = &self.runs[run];
        let place = || format!("the log of {run} of {}", self.id);
        let numbers = || log.iter().map(|event| event.number).collect::<Vec<_>>();
        log.iter()
            .filter(|event| event.is_continuation())
            .for_each(|_| report.count("continuations"));
        report.expect(is_gapless(0, log, true), || {
            format!("{} has the numbers {:?}", place(), numbers())
        });
        for (number, json) in &facts.numbered {
            let stored = log.iter().find(|event| event.number == Some(*number));
            report.expect(stored.is_some_and(|stored| stored.json == *json), || {
                format!("{} has {stored:?} as event {number}, a client has read {json}", place())
            });
        }
        // A client gets an error of its own when the end of the run cannot be stored, and when the thread is deleted.
        let own_error = |json: &&String| {
            json.contains("\"store_unavailable\"") || json.contains("\"thread_deleted\"")
        };
        let stored: Vec<_> =
            log.iter().filter(|event| !event.is_snapshot()).map(|event| &event.json).collect();
        let read: Vec<_> = facts.first.iter().filter(|json| !own_error(json)).collect();
        report.expect(stored.starts_with(&read), || {
            format!("{} is {stored:?}, a client has read {read:?}", place())
        });
        check_stream(log, true, &place, report);
    }
}

/// Checks that a stream begins with `RUN_STARTED`, and that nothing follows its terminal event. A complete one has a
/// terminal event.
pub(crate) fn check_stream(
    events: &[Event],
    is_complete: bool,
    place: &dyn Fn() -> String,
    report: &Report,
) {
    let names = || events.iter().map(Event::name).collect::<Vec<_>>();
    let ends = events.iter().filter(|event| event.is_terminal()).count();
    let is_last = events.last().is_some_and(Event::is_terminal);
    let begins = events.first().is_none_or(|event| event.name() == "RUN_STARTED");
    report.expect(begins, || format!("{} begins with {:?}", place(), events.first()));
    report.expect(ends == usize::from(is_last) && (is_last || !is_complete), || {
        format!("{} has {ends} terminal events: {:?}", place(), names())
    });
}
