//! The load: a worker uses a few threads of one principal, and remembers what the servers acknowledged.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    client::{Answer, Client, Manner, Reading, marker},
    dice::Dice,
    model::{Existence, Thread, is_stored_end, messages_of, text},
};

const MAX_THREADS: usize = 6;
/// A thread with more messages is deleted when that is possible.
const MAX_MESSAGES: usize = 40;

pub(crate) struct Worker {
    pub(crate) client: Client,
    pub(crate) dice: Dice,
    pub(crate) threads: Vec<Thread>,
    /// A number that is unique among the workers of the principal.
    number: usize,
    next: usize,
}

/// A run that a worker starts.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) input: Value,
    /// The number of messages that stay, and the new one.
    kept: usize,
    new: Option<Value>,
    manner: Manner,
    cancels: bool,
}

impl Worker {
    pub(crate) fn new(client: Client, number: usize, dice: Dice) -> Self {
        Self { client, dice, threads: Vec::new(), number, next: 0 }
    }

    /// Returns an id that has the marker of the principal.
    fn id(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}{}{}-{}", marker(self.client.principal), self.number, self.next)
    }

    fn add_thread(&mut self) -> usize {
        self.next += 1;
        // Half of the ids are used by all principals.
        let id = match self.dice.chance(2) {
            true => {
                format!("own{}{}-{}", marker(self.client.principal), self.number, self.next % 50)
            }
            false => format!("shared-{}-{}", self.number, self.next % 50),
        };
        if let Some(known) = self.threads.iter().position(|thread| thread.id == id) {
            return known;
        }
        self.threads.push(Thread::new(id));
        self.threads.len() - 1
    }

    /// Sends one request, or a few that belong together.
    pub(crate) async fn step(&mut self) {
        let settled: Vec<_> =
            (0..self.threads.len()).filter(|at| self.threads[*at].is_settled).collect();
        if self.dice.chance(6) {
            return self.look().await;
        }
        let at = match settled.len() {
            0 | 1 if self.threads.len() < MAX_THREADS => self.add_thread(),
            0 => return self.retry().await,
            _ => self.dice.pick(&settled),
        };
        let thread = &self.threads[at];
        if !thread.is_settled {
            return self.retry().await;
        }
        let (count, has_interrupts) = (thread.messages.len(), !thread.interrupts.is_empty());
        match self.dice.below(20) {
            _ if count > MAX_MESSAGES => self.delete(at).await,
            0..=4 if has_interrupts => self.answer(at).await,
            0..=4 => {
                let request = self.say(at, "say");
                self.run(at, request).await;
            }
            5..=7 => self.run_detached(at).await,
            8 | 9 => {
                let request = self.say(at, "mail");
                self.run(at, request).await;
            }
            10 | 11 => {
                let request = self.say(at, "count 400");
                self.run(at, Request { cancels: true, ..request }).await;
            }
            12 => {
                let (request, leaves_after) =
                    (self.say(at, "count 60"), Some(1 + self.dice.below(20)));
                self.run(at, Request { manner: Manner { leaves_after, stalls: None }, ..request })
                    .await;
            }
            13 => {
                let request = self.say(at, "count 80");
                let stalls = Some(Duration::from_millis(self.dice.between(100, 1200)));
                self.run(
                    at,
                    Request { manner: Manner { leaves_after: Some(3), stalls }, ..request },
                )
                .await;
            }
            14 => {
                let request = self.say(at, "fail");
                self.run(at, request).await;
            }
            15..=17 => self.branch(at).await,
            18 => self.delete(at).await,
            _ => self.retry().await,
        }
    }

    /// A new message after all that the client knows, or the new message alone.
    pub(crate) fn say(&mut self, at: usize, words: &str) -> Request {
        let id = self.id("m");
        let new =
            json!({ "id": id, "role": "user", "content": format!("{words} {}", self.id("text")) });
        let known =
            if self.dice.chance(3) { Vec::new() } else { self.threads[at].messages.clone() };
        let kept = self.threads[at].messages.len();
        self.request(at, [known, vec![new.clone()]].concat(), kept, Some(new))
    }

    fn request(
        &mut self,
        at: usize,
        messages: Vec<Value>,
        kept: usize,
        new: Option<Value>,
    ) -> Request {
        let input =
            json!({ "threadId": self.threads[at].id, "runId": self.id("r"), "messages": messages });
        Request { input, kept, new, manner: Manner::default(), cancels: false }
    }

    /// Answers the open interrupts.
    pub(crate) fn resume(&mut self, at: usize, interrupts: &[Value]) -> Request {
        let payload = json!({ "approved": self.dice.chance(2) });
        let entry = |it: &Value| json!({ "interruptId": it["id"], "status": "resolved", "payload": payload });
        let entries: Vec<_> = interrupts.iter().map(entry).collect();
        let kept = self.threads[at].messages.len();
        let mut request = self.request(at, Vec::new(), kept, None);
        request.input["resume"] = entries.into();
        request
    }

    async fn answer(&mut self, at: usize) {
        let interrupts = std::mem::take(&mut self.threads[at].interrupts);
        let request = self.resume(at, &interrupts);
        let mut again = request.input.clone();
        let is_answered = self.run(at, request).await.is_some();
        if is_answered && self.dice.chance(3) {
            // A repeated answer must not have a second effect.
            again["runId"] = self.id("r").into();
            let kept = self.threads[at].messages.len();
            let request = Request {
                input: again,
                kept,
                new: None,
                manner: Manner::default(),
                cancels: false,
            };
            self.run(at, request).await;
        }
    }

    /// Edits a message, or asks for another response to it.
    async fn branch(&mut self, at: usize) {
        let messages = self.threads[at].messages.clone();
        let of_user: Vec<_> =
            (1..messages.len()).filter(|at| messages[*at]["role"] == "user").collect();
        if of_user.is_empty() {
            return;
        }
        let place = self.dice.pick(&of_user);
        let request = if self.dice.chance(2) {
            let id = self.id("m");
            let new = json!({ "id": id, "role": "user", "content": format!("say edited {}", self.id("text")) });
            self.request(
                at,
                [&messages[..place], std::slice::from_ref(&new)].concat(),
                place,
                Some(new),
            )
        } else {
            self.request(at, messages[..=place].to_vec(), place + 1, None)
        };
        self.threads[at].interrupts.clear();
        self.client.report.count("edits");
        self.run(at, request).await;
    }

    /// Sends a run, reads its response, and notes what both tell. Returns the terminal event.
    pub(crate) async fn run(&mut self, at: usize, request: Request) -> Option<Value> {
        let Request { input, kept, new, manner, cancels } = request;
        let run = text(&input["runId"]).to_owned();
        let reading = match self.client.run(&mut self.dice, &input).await {
            Answer::Refused => return None,
            Answer::Unknown => Reading { events: Vec::new(), is_complete: false },
            Answer::Stream(mut stream) if cancels => {
                let manner = Manner { leaves_after: Some(1 + self.dice.below(30)), stalls: None };
                let mut reading = self.client.read(&run, &mut stream, manner).await;
                if !reading.events.is_empty() {
                    self.cancel(at, &run).await;
                }
                self.client.read_on(&run, &mut stream, &mut reading, usize::MAX).await;
                reading
            }
            Answer::Stream(mut stream) => self.client.read(&run, &mut stream, manner).await,
        };
        let thread = &mut self.threads[at];
        thread.messages.truncate(kept);
        if reading.events.is_empty() {
            thread.is_settled = false;
            thread.unanswered = Some(input);
            if thread.existence == Existence::Absent {
                thread.existence = Existence::Unknown;
            }
            return None;
        }
        self.client.report.count("runs");
        // The client's message is stored before the run begins.
        thread.existence = Existence::Present;
        thread.messages.extend(new.clone());
        let facts = thread.runs.entry(run.clone()).or_default();
        facts.is_detached = input["forwardedProps"]["onDisconnect"] == "continue";
        facts.learn(&reading.events);
        let terminal = facts.terminal.clone().filter(is_stored_end)?;
        self.client.report.count(&format!("ends {}", outcome(&terminal)));
        let made = messages_of(&reading.events);
        if let Some(new) = new.filter(|new| {
            text(&new["content"]).starts_with("say") && outcome(&terminal) == "success"
        }) {
            let is_answer = made
                .iter()
                .any(|message| text(&message["content"]).contains(text(&new["content"])));
            self.client.report.expect(is_answer, || format!("{run} answers {new} with {made:?}"));
        }
        thread.messages.extend(made);
        thread.interrupts =
            terminal["outcome"]["interrupts"].as_array().cloned().unwrap_or_default();
        Some(terminal)
    }

    async fn run_detached(&mut self, at: usize) {
        let words = self.dice.pick(&["count 30", "count 150", "say"]);
        let mut request = self.say(at, words);
        request.input["forwardedProps"] = json!({ "onDisconnect": "continue" });
        if self.dice.chance(2) {
            request.manner.leaves_after = Some(1 + self.dice.below(25));
        }
        let run = text(&request.input["runId"]).to_owned();
        self.run(at, request).await;
        if !self.threads[at].runs.contains_key(&run) {
            return;
        }
        self.client.report.count("detached");
        for _ in 0..self.dice.below(3) {
            let (after, leaves_after) =
                (self.dice.between(0, 20), self.dice.pick(&[None, Some(5), Some(20)]));
            let manner = Manner { leaves_after, stalls: None };
            let thread = &mut self.threads[at];
            if let Some(reading) =
                self.client.follow(&mut self.dice, &thread.id, &run, after, manner).await
            {
                let facts = thread.runs.get_mut(&run).unwrap();
                let terminal = facts.terminal.take();
                facts.learn(&reading.events);
                facts.terminal = facts.terminal.take().or(terminal);
            }
        }
    }

    async fn cancel(&mut self, at: usize, run: &str) {
        let path = format!("/threads/{}/runs/{run}/cancel", self.threads[at].id);
        let Ok((status, body)) = self.client.ask(&mut self.dice, "POST", &path).await else {
            return;
        };
        self.client.report.count("cancels");
        let is_known = matches!(status, 200 | 202 | 503);
        self.client.report.expect(is_known, || format!("{path} is answered with {status} {body}"));
    }

    async fn delete(&mut self, at: usize) {
        let thread = &mut self.threads[at];
        let path = format!("/threads/{}", thread.id);
        match self.client.ask(&mut self.dice, "DELETE", &path).await {
            Ok((204, _)) => {
                self.client.report.count("deletes");
                thread.clear();
            }
            Ok((404, _)) if thread.existence == Existence::Absent => {}
            Ok((503, _)) | Err(_) => {
                thread.is_settled = false;
                thread.existence = Existence::Unknown;
            }
            Ok((status, body)) => {
                self.client.report.violation(format!(
                    "DELETE {path} is answered with {status} {body}: {thread:?}"
                ));
            }
        }
    }

    /// Repeats a request whose outcome is unknown, as a client does.
    async fn retry(&mut self) {
        let Some(at) = self.threads.iter().position(|thread| thread.unanswered.is_some()) else {
            return sleep(Duration::from_millis(5)).await;
        };
        let Some(input) = self.threads[at].unanswered.take() else { return };
        let Answer::Stream(mut stream) = self.client.run(&mut self.dice, &input).await else {
            return;
        };
        let reading = self.client.read("a repeated request", &mut stream, Manner::default()).await;
        let thread = &mut self.threads[at];
        // The first request may still be running, so its run may replace this one.
        if !reading.events.is_empty() {
            self.client.report.count("retries");
            thread.existence = Existence::Present;
            let new = input["messages"].as_array().and_then(|messages| messages.last());
            thread.messages.extend(new.filter(|new| !thread.messages.contains(new)).cloned());
        }
    }

    /// Reads a thread, a list, or a thread of another principal.
    async fn look(&mut self) {
        let known = self.threads.len();
        if self.dice.chance(3) || known == 0 {
            let other = (self.client.principal + 1) % self.client.principals;
            let id = format!("own{}{}-{}", marker(other), self.dice.below(3), self.dice.below(30));
            let (method, path) = self.dice.pick(&[
                ("GET", format!("/threads/{id}")),
                ("DELETE", format!("/threads/{id}")),
                ("POST", format!("/threads/{id}/runs/r{}1-2/cancel", marker(other))),
                ("GET", format!("/threads/{id}/runs/r{}1-2/events", marker(other))),
            ]);
            if let Ok((status, _)) = self.client.ask(&mut self.dice, method, &path).await {
                let is_hidden = matches!(status, 404 | 503);
                self.client
                    .report
                    .expect(is_hidden, || format!("{method} {path} of a stranger: {status}"));
            }
            return;
        }
        let at = self.dice.below(known);
        let thread = &self.threads[at];
        if let Ok(view) = self.client.view(&mut self.dice, &thread.id).await {
            thread.check_view(view.as_ref(), &self.client.report);
        }
    }
}

fn outcome(terminal: &Value) -> &str {
    terminal["outcome"]["type"].as_str().or(terminal["code"].as_str()).unwrap_or("success")
}
