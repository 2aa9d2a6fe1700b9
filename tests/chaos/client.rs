//! A client of one principal. Checks every response: no failure of the server, no content of another principal, no
//! illegal stream.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::sleep;

use crate::{
    dice::Dice,
    http::{self, Broken, Event, EventStream, Response},
    model::{Report, check_stream, is_gapless, text},
};

pub(crate) struct Client {
    /// The addresses of the servers.
    pub(crate) addresses: Arc<[SocketAddr]>,
    pub(crate) principal: usize,
    /// The number of principals.
    pub(crate) principals: usize,
    pub(crate) report: Arc<Report>,
}

/// The way in which a client reads a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    /// Leaves after this number of events.
    pub(crate) leaves_after: Option<usize>,
    /// Reads nothing for this time after the first events.
    pub(crate) stalls: Option<Duration>,
}

pub(crate) struct Reading {
    pub(crate) events: Vec<Event>,
    pub(crate) is_complete: bool,
}

pub(crate) enum Answer {
    Stream(EventStream),
    /// The run was refused, and nothing of the request is stored.
    Refused,
    /// The request may have taken effect, or may still.
    Unknown,
}

/// The API key of a principal.
pub(crate) fn key(principal: usize) -> String {
    format!("key-of-principal-{principal}-{}", "k".repeat(32))
}

/// A part of all ids and texts of a principal.
pub(crate) fn marker(principal: usize) -> String {
    format!("-p{principal}-")
}

impl Client {
    pub(crate) async fn send(
        &self,
        dice: &mut Dice,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, Broken> {
        let address = dice.pick(&self.addresses);
        let response = http::send(address, method, path, &key(self.principal), body).await;
        match &response {
            Ok(response) => {
                let status = response.status;
                self.report.expect(![400, 401, 403, 413, 500].contains(&status), || {
                    format!(
                        "{method} {path} of the principal {} is answered with {status}",
                        self.principal
                    )
                });
            }
            Err(Broken(reason)) => self.report.count(&format!("broken heads ({reason})")),
        }
        response
    }

    /// Sends a request whose response is not a stream.
    pub(crate) async fn ask(
        &self,
        dice: &mut Dice,
        method: &str,
        path: &str,
    ) -> Result<(u16, Value), Broken> {
        let (status, body) = self.send(dice, method, path, None).await?.text().await?;
        self.check_owner(path, &body);
        if status >= 400 {
            self.report.count(&format!("refusals {status}"));
        }
        match body.is_empty() {
            true => Ok((status, Value::Null)),
            false => match serde_json::from_str(&body) {
                Ok(body) => Ok((status, body)),
                Err(error) => Err(Broken(format!("{error} in the body of {path}"))),
            },
        }
    }

    /// Returns a thread with all messages of its branch; `None` if it does not exist.
    pub(crate) async fn view(
        &self,
        dice: &mut Dice,
        thread: &str,
    ) -> Result<Option<Value>, Broken> {
        let mut view = match self.ask(dice, "GET", &format!("/threads/{thread}")).await? {
            (200, view) => view,
            (404, _) => return Ok(None),
            (status, body) => return Err(Broken(format!("{status} {body}"))),
        };
        let mut before = view["before"].take();
        while let Some(cursor) = before.as_str() {
            let path = format!("/threads/{thread}/messages?limit=200&before={cursor}");
            let (200, mut page) = self.ask(dice, "GET", &path).await? else {
                return Err(Broken(format!("{path} has no page")));
            };
            before = page["before"].take();
            let older = page["messages"].as_array_mut().map(std::mem::take).unwrap_or_default();
            if let Some(messages) = view["messages"].as_array_mut() {
                messages.splice(0..0, older);
            }
        }
        Ok(Some(view))
    }

    pub(crate) async fn run(&self, dice: &mut Dice, input: &Value) -> Answer {
        let path = if dice.chance(5) { "/agents/echo/send-message" } else { "/send-message" };
        let path = if input.get("resume").is_some() { "/send-message" } else { path };
        let Ok(response) = self.send(dice, "POST", path, Some(input)).await else {
            return Answer::Unknown;
        };
        if response.status == 200 {
            return Answer::Stream(EventStream::new(response));
        }
        let Ok((status, body)) = response.text().await else { return Answer::Unknown };
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        let code = text(&body["error"]["code"]);
        self.report.count(&format!("refusals {code}"));
        match code {
            "shutting_down" | "too_many_runs" | "too_many_detached_runs" | "too_many_queued" => {
                Answer::Refused
            }
            "run_is_running" | "store_unavailable" | "lease_lost" => Answer::Unknown,
            _ => {
                self.report.violation(format!("the run {input} is refused with {status} {body}"));
                Answer::Unknown
            }
        }
    }

    /// Reads a stream.
    pub(crate) async fn read(
        &self,
        what: &str,
        stream: &mut EventStream,
        manner: Manner,
    ) -> Reading {
        let mut reading = Reading { events: Vec::new(), is_complete: false };
        self.read_on(what, stream, &mut reading, manner.leaves_after.unwrap_or(usize::MAX)).await;
        if let Some(time) = manner.stalls
            && !reading.is_complete
        {
            sleep(time).await;
            self.read_on(what, stream, &mut reading, usize::MAX).await;
        }
        reading
    }

    /// Reads until there are `limit` events.
    pub(crate) async fn read_on(
        &self,
        what: &str,
        stream: &mut EventStream,
        reading: &mut Reading,
        limit: usize,
    ) {
        while !reading.is_complete && reading.events.len() < limit {
            match stream.next().await {
                Ok(Some(event)) => {
                    self.check_owner(what, &event.json);
                    reading.events.push(event);
                }
                Ok(None) => {
                    reading.is_complete = true;
                    break;
                }
                Err(Broken(reason)) => {
                    self.report.count(&format!("broken bodies ({reason})"));
                    let is_silent = reason.contains("sent nothing");
                    self.report.expect(!is_silent, || format!("{what}: {reason}"));
                    break;
                }
            }
        }
        if reading.events.first().is_some_and(|event| event.name() == "RUN_STARTED") {
            check_stream(&reading.events, reading.is_complete, &|| what.to_owned(), &self.report);
        }
    }

    /// Follows a run after the event with number `after`. Returns `None` if the server did not respond with its events.
    pub(crate) async fn follow(
        &self,
        dice: &mut Dice,
        thread: &str,
        run: &str,
        after: u64,
        manner: Manner,
    ) -> Option<Reading> {
        let path = format!("/threads/{thread}/runs/{run}/events?after={after}");
        let response = self.send(dice, "GET", &path, None).await.ok()?;
        match response.status {
            200 => {
                let reading = self.read(&path, &mut EventStream::new(response), manner).await;
                let is_whole = after == 0 && reading.is_complete;
                self.report.expect(is_gapless(after, &reading.events, is_whole), || {
                    format!(
                        "{path} has gaps: {:?}",
                        reading.events.iter().map(|it| it.number).collect::<Vec<_>>()
                    )
                });
                let has_end =
                    reading.events.last().is_none_or(Event::is_terminal) || !reading.is_complete;
                self.report.expect(has_end, || {
                    format!("{path} has no terminal event: {:?}", reading.events)
                });
                self.report.count("followed");
                Some(reading)
            }
            204 => Some(Reading { events: Vec::new(), is_complete: true }),
            503 => None,
            status => {
                self.report.violation(format!("{path} is answered with {status}"));
                None
            }
        }
    }

    fn check_owner(&self, what: &str, body: &str) {
        for other in (0..self.principals).filter(|other| *other != self.principal) {
            self.report.expect(!body.contains(&marker(other)), || {
                format!("{what} shows the principal {} content of {other}: {body}", self.principal)
            });
        }
    }
}
