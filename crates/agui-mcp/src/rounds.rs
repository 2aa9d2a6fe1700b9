//! Calls that take several requests, since the revision 2026-07-28.
//!
//! A server that needs something from a person ends its response with questions and its state. The
//! questions are interrupts, and the state stands in their ids: the next run, on any server, sends
//! the state and the replies, and **the call continues and does not start again**. A server can
//! also turn a call into a task, which is polled until it has ended; a detached run that is
//! continued on another server polls the same task.

use std::{collections::BTreeMap, time::Duration};

use rmcp::model::{
    ClientRequest, GetTaskParams, GetTaskRequest, InputResponses, UpdateTaskParams,
    UpdateTaskRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use super::{
    call::{McpCaller, McpResponse},
    client::cancel_task,
    wanted::Wanted,
};
use agui_base::text::short_line;
use agui_tools::{ToolContext, ToolError, host::Secrets};

/// A server could ask forever.
const MAX_ROUNDS: usize = 16;
/// The pause before a server that was busy, and asks nothing, gets its state back.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
/// The pause between two requests for a task whose server does not say how long it should be.
const POLL_PAUSE: Duration = Duration::from_secs(1);
const MIN_POLL_PAUSE: Duration = Duration::from_millis(100);
const MAX_POLL_PAUSE: Duration = Duration::from_secs(30);

/// The state by which a call that waits for a person, or for its task, can be continued.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Round {
    number: usize,
    /// `requestState`, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// The id of the task that the call has become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// The server's questions: their keys and kinds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    asked: BTreeMap<String, Asked>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    Form,
    Visit,
}

impl McpCaller {
    /// Makes or continues a call, and returns its result.
    pub(super) async fn call(
        &self,
        request: impl Into<ClientRequest>,
        cx: &ToolContext,
    ) -> McpResponse {
        let request: ClientRequest = request.into();
        let mut round = cx.kept().map(Round::deserialize).transpose()?.unwrap_or_default();
        let mut given = round.replies(cx)?;
        if let Some(task) = round.task.clone() {
            if !given.is_empty() {
                let update = UpdateTaskRequest::new(UpdateTaskParams::new(task, given));
                self.send_once(update.into(), cx).await?;
            }
            return self.finish_task(round, None, cx).await;
        }
        loop {
            let mut next = request.clone();
            add_round(&mut next, &mut round, given);
            let (response, secrets) = self.send_once(next, cx).await?;
            match response.get("resultType").and_then(Value::as_str) {
                Some("input_required") => {}
                Some("task") => {
                    round.task = response.get("taskId").and_then(Value::as_str).map(str::to_owned);
                    return self.finish_task(round, Some((response, secrets)), cx).await;
                }
                _ => return Ok((response, secrets)),
            }
            round.state = response.get("requestState").and_then(Value::as_str).map(str::to_owned);
            self.ask(&mut round, &response, cx)?;
            sleep(BUSY_PAUSE).await;
            given = InputResponses::new();
        }
    }

    /// Asks the questions of a response, if it has some.
    ///
    /// # Errors
    /// The questions as an error that ends the run. Also if the server asks too often, or for
    /// something that no person can be asked for.
    fn ask(&self, round: &mut Round, response: &Value, cx: &ToolContext) -> Result<(), ToolError> {
        round.number += 1;
        if round.number > MAX_ROUNDS {
            return Err(self.error(format_args!("did not end the call in {MAX_ROUNDS} rounds.")));
        }
        round.asked.clear();
        let mut questions = Vec::new();
        for (key, request) in
            response.get("inputRequests").and_then(Value::as_object).into_iter().flatten()
        {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let Some((message, wanted)) =
                self.wanted(method, request.get("params").unwrap_or(&Value::Null))
            else {
                let problem =
                    self.error(format_args!("asks for what it cannot have here: {method}"));
                return Err(ToolError::new(short_line(problem.message())));
            };
            let asked = if matches!(wanted, Wanted::Form(_)) { Asked::Form } else { Asked::Visit };
            round.asked.insert(key.clone(), asked);
            questions.push(self.question(&message, wanted, cx).key(round.key(key)));
        }
        if questions.is_empty() {
            Ok(())
        } else {
            Err(cx.ask_and_keep(questions, round.to_value()))
        }
    }

    /// Returns the text of a question and what is wanted; `None` if no person can be asked.
    pub(super) fn wanted(&self, method: &str, params: &Value) -> Option<(String, Wanted)> {
        let is_question = self.options.elicitation && method == "elicitation/create";
        let (message, wanted) = Some(params).filter(|_| is_question).and_then(Wanted::read)?;
        wanted.is_short(&message).then_some((message, wanted))
    }

    /// Polls a task until it has ended. It is cancelled with the call, unless another server
    /// continues the run.
    async fn finish_task(
        &self,
        mut round: Round,
        begun: Option<(Value, Secrets)>,
        cx: &ToolContext,
    ) -> McpResponse {
        let id = round
            .task
            .clone()
            .ok_or_else(|| self.error("made a task without an id of the call."))?;
        let mut running = RunningTask { caller: self, cx, id: Some(id.clone()) };
        if begun.is_some() {
            // A server that continues the run polls the task, and does not call again.
            cx.keep_in_log(round.to_value());
            cx.run().written().await;
        }
        let begin = Instant::now();
        let mut last_seen = begin;
        let mut shown = None;
        let (mut task, mut secrets) = begun.unwrap_or_default();
        loop {
            let text = |key: &str| task.get(key).and_then(Value::as_str).map(str::to_owned);
            let message = text("statusMessage").filter(|message| !message.trim().is_empty());
            match text("status").as_deref() {
                Some("completed") => {
                    running.id = None;
                    return Ok((task.get("result").cloned().unwrap_or_default(), secrets));
                }
                Some(ended @ ("failed" | "cancelled")) => {
                    running.id = None;
                    let error =
                        task.pointer("/error/message").and_then(Value::as_str).map(str::to_owned);
                    let reason = error.or(message).unwrap_or_default();
                    let reason = secrets.redact(&reason).unwrap_or(reason);
                    let (server, reason) = (&self.server, short_line(&reason));
                    return Err(ToolError::new(format!(
                        "The task of the MCP server `{server}` has {ended}: {reason}"
                    )));
                }
                // A server may repeat questions that are answered, until it continues the task.
                Some("input_required") if !round.has_asked(&task) => {
                    if let Err(error) = self.ask(&mut round, &task, cx) {
                        // The task waits for the reply.
                        running.id.take_if(|_| error.is_question());
                        return Err(error);
                    }
                }
                _ => {}
            }
            if begin.elapsed() > self.options.max_timeout {
                let seconds = self.options.max_timeout.as_secs_f32();
                return Err(self.error(format_args!("did not end the task within {seconds} s.")));
            }
            if let Some(text) = message.clone().filter(|_| message != shown) {
                let text = secrets.redact(&text).unwrap_or(text);
                let _ = cx.show_progress(short_line(&text), None);
                shown = message;
            }
            cx.extend_time_limit();
            if !task.is_null() {
                sleep(poll_pause(&task)).await;
            }
            let get = GetTaskRequest::new(GetTaskParams::new(id.clone()));
            match self.send_once(get.into(), cx).await {
                Ok(found) => ((task, secrets), last_seen) = (found, Instant::now()),
                // The server may be back soon, and still know the task.
                Err(error) if error.has_cause() && last_seen.elapsed() < self.options.timeout => {
                    task = json!({ "status": "working" });
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Round {
    fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn key(&self, key: &str) -> String {
        format!("mcp-{}-{key}", self.number)
    }

    /// Returns whether the round has already asked all questions of a task.
    fn has_asked(&self, task: &Value) -> bool {
        let requests = task.get("inputRequests").and_then(Value::as_object);
        requests.into_iter().flatten().all(|(key, _)| self.asked.contains_key(key))
    }

    /// Returns the replies to the questions of the round.
    fn replies(&self, cx: &ToolContext) -> Result<InputResponses, ToolError> {
        let reply = |(key, asked): (&String, &Asked)| {
            let given = cx.given_reply(&self.key(key)).ok_or_else(ToolError::question)?;
            let result = match (given, asked) {
                (None, _) => json!({ "action": "decline" }),
                (Some(content), Asked::Form) => json!({ "action": "accept", "content": content }),
                (Some(_), Asked::Visit) => json!({ "action": "accept" }),
            };
            Ok((key.clone(), result))
        };
        self.asked.iter().map(reply).collect()
    }
}

/// Adds the state and the replies of a round, with which the request continues the call.
fn add_round(request: &mut ClientRequest, round: &mut Round, given: InputResponses) {
    let given = Some(given).filter(|given| !given.is_empty());
    let (responses, state) = match request {
        ClientRequest::CallToolRequest(call) => {
            (&mut call.params.input_responses, &mut call.params.request_state)
        }
        ClientRequest::GetPromptRequest(get) => {
            (&mut get.params.input_responses, &mut get.params.request_state)
        }
        ClientRequest::ReadResourceRequest(read) => {
            (&mut read.params.input_responses, &mut read.params.request_state)
        }
        _ => return,
    };
    (*responses, *state) = (given, round.state.take());
}

fn poll_pause(task: &Value) -> Duration {
    let pause = task.get("pollIntervalMs").and_then(Value::as_u64).map(Duration::from_millis);
    pause.unwrap_or(POLL_PAUSE).clamp(MIN_POLL_PAUSE, MAX_POLL_PAUSE)
}

/// Cancels a task when it is dropped.
struct RunningTask<'c> {
    caller: &'c McpCaller,
    cx: &'c ToolContext,
    /// `None` once there is nothing to cancel.
    id: Option<String>,
}

impl Drop for RunningTask<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take().filter(|_| !self.cx.run().is_left_to_another_server()) else {
            return;
        };
        let client = self.caller.session.client();
        let (Ok(client), Ok(runtime)) = (client, Handle::try_current()) else { return };
        let headers = self.caller.caller_headers.for_call(self.cx).unwrap_or_default();
        runtime.spawn(async move { cancel_task(&client.peer, id, headers).await });
    }
}
