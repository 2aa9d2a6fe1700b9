//! The surroundings of one tool call: its run, and the ways to report, to emit events and to ask a person.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    call_digest::{arguments_digest, digest},
    error::ToolError,
    question::{CallReplies, KeptValue, Question, UserReply},
    session::ToolSession,
};
use agui_agent::{
    Principal, RunContext,
    files::{SharedFile, UploadError},
};
use agui_base::trace::TraceScope;
use agui_protocol::{
    Event, Interrupt, JsonObject, MessageId, RunId, ThreadId, ToolCallId, event::ActivitySnapshot,
    own_names::TOOL_PROGRESS,
};

/// The bytes of an idempotency key before base64.
const KEY_BYTES: usize = 24;

/// The surroundings of one call of a tool. Cheap to clone.
#[derive(Clone)]
pub struct ToolContext(Arc<CallParts>);

struct CallParts {
    call_id: ToolCallId,
    /// The idempotency key.
    key: String,
    tool: String,
    session: ToolSession,
    replies: CallReplies,
    /// `None` for a call that is not traced apart from its run.
    trace: Option<TraceScope>,
    questions: Mutex<OpenQuestions>,
    after_result: Mutex<Vec<Event>>,
    progressed: Notify,
}

#[derive(Default)]
struct OpenQuestions {
    unnamed: usize,
    open: Vec<Interrupt>,
}

impl ToolContext {
    /// Makes the surroundings of a call that an agent makes itself. Emitted events wait for
    /// [`take_events`](Self::take_events).
    pub fn new(
        run: RunContext,
        state: Value,
        call_id: impl Into<ToolCallId>,
        tool: impl Into<String>,
    ) -> Self {
        let call_id = call_id.into();
        let replies = CallReplies::none(format!(":{call_id}"), None);
        Self::for_call(
            ToolSession::new(run, state),
            call_id,
            tool.into(),
            &JsonObject::new(),
            replies,
        )
    }

    #[doc(hidden)]
    pub fn for_call(
        session: ToolSession,
        call_id: ToolCallId,
        tool: String,
        arguments: &JsonObject,
        replies: CallReplies,
    ) -> Self {
        let run = session.run();
        let owner = run.principal().map_or("", Principal::id);
        let place = json!([
            owner,
            run.thread_id(),
            run.seed().simple().to_string(),
            arguments_digest(&tool, arguments)
        ]);
        Self(Arc::new(CallParts {
            key: digest(call_id.as_str(), &place.to_string(), KEY_BYTES),
            call_id,
            tool,
            session,
            replies,
            trace: None,
            questions: Mutex::default(),
            after_result: Mutex::default(),
            progressed: Notify::new(),
        }))
    }

    /// Puts the call within a span of its own. Has no effect if the context was cloned already.
    #[doc(hidden)]
    pub fn within(mut self, trace: TraceScope) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.trace = Some(trace);
        }
        self
    }

    /// The call's id within the conversation.
    pub fn call_id(&self) -> &ToolCallId {
        &self.0.call_id
    }

    /// The name that the model called.
    pub fn tool_name(&self) -> &str {
        &self.0.tool
    }

    /// The conversation.
    pub fn thread_id(&self) -> &ThreadId {
        self.run().thread_id()
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        self.run().run_id()
    }

    /// The principal of the run; `None` when the server authenticates no one.
    pub fn principal(&self) -> Option<&Principal> {
        self.run().principal()
    }

    /// The values of a request header that is passed to agents and tools (`pass_headers`). `name` is in lower case.
    pub fn header_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.run().header_values(name)
    }

    /// A text that is the same for each attempt of this call, and different for all other calls:
    /// also for other arguments, and for a later run with the same id. A server that knows the key
    /// lets the effect of the call happen once; see [`Repeat::Keyed`](super::Repeat::Keyed).
    pub fn idempotency_key(&self) -> &str {
        &self.0.key
    }

    /// The number of this attempt, from 1 on. It is more than 1 if the run was continued on another
    /// server: then this call may have run before.
    pub fn attempt(&self) -> u32 {
        self.run().continuation().map_or(1, |continuation| continuation.attempt + 1)
    }

    /// The run's surroundings.
    pub fn run(&self) -> &RunContext {
        self.0.session.run()
    }

    /// The place of the call in a trace.
    #[doc(hidden)]
    pub fn trace(&self) -> &TraceScope {
        self.0.trace.as_ref().unwrap_or_else(|| self.run().trace())
    }

    /// The headers `traceparent` and `tracestate` for a request to another server. Empty outside of a trace.
    pub fn trace_headers(&self) -> http::HeaderMap {
        self.trace().headers()
    }

    /// Returns the shared state, with all changes that this run has made so far.
    pub fn state(&self) -> Arc<Value> {
        self.0.session.state()
    }

    /// Emits an event into the run's stream, and completes when it is on its way to the client, so
    /// that a tool is not faster than the client. A tool has to close the items that it opens, such
    /// as a text message: an illegal stream ends the run with `RUN_ERROR`.
    ///
    /// # Errors
    /// If the event belongs to the server (`RUN_*`, `MESSAGES_SNAPSHOT`, the result of this call), if a state delta
    /// does not apply, or if the call is over.
    pub async fn emit(&self, event: impl Into<Event>) -> Result<(), ToolError> {
        self.emit_all([event.into()]).await
    }

    /// Emits several events, without events of other calls between them.
    ///
    /// # Errors
    /// Like [`emit`](Self::emit). The events before the refused one stay emitted.
    pub async fn emit_all(&self, events: impl IntoIterator<Item = Event>) -> Result<(), ToolError> {
        for event in events {
            let is_servers = match &event {
                Event::RunStarted(_)
                | Event::RunFinished(_)
                | Event::RunError(_)
                | Event::MessagesSnapshot(_) => true,
                Event::ToolCallResult(result) => result.tool_call_id == self.0.call_id,
                _ => false,
            };
            if is_servers {
                let kind = event.event_type().as_str();
                return Err(ToolError::new(format!("a tool cannot emit {kind}: the server does")));
            }
            self.0.session.emit(event)?;
        }
        self.0.session.drained().await;
        Ok(())
    }

    /// Hands a file over to the user, as [`Emitter::file`](agui_agent::Emitter::file) does.
    ///
    /// # Errors
    /// If the file is too large or cannot be stored, and like [`emit`](Self::emit).
    pub async fn file(
        &self,
        name: impl Into<String>,
        media_type: impl Into<String>,
        bytes: impl Into<Bytes>,
    ) -> Result<(), ToolError> {
        let file = SharedFile {
            bytes: bytes.into(),
            media_type: media_type.into(),
            name: Some(name.into()),
        };
        let event = file.into_event(self.run().files()).await.map_err(|error| match error {
            UploadError::Store(error) => {
                ToolError::new("the file cannot be stored now").caused_by(error)
            }
            error => ToolError::new(error.to_string()),
        })?;
        self.emit(event).await
    }

    /// Emits an event after the result of the call. The event is dropped if the call has no result
    /// because it waits for a person.
    pub fn emit_after_result(&self, event: Event) {
        self.0.after_result.lock().push(event);
    }

    /// Takes the events that follow the result of the call.
    #[doc(hidden)]
    pub fn take_after_result(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.after_result.lock())
    }

    /// Reports progress as an activity of the type `agui-server.tool_progress`, whose content is `toolCallId`,
    /// `toolName`, `message` and, if given, `fraction`, from 0 to 1. Each report of a call replaces the one before, and lets the
    /// agent's time limit for a call begin again.
    ///
    /// # Errors
    /// If the call is over.
    pub async fn report_progress(
        &self,
        message: impl Into<String>,
        fraction: impl Into<Option<f64>>,
    ) -> Result<(), ToolError> {
        self.show_progress(message.into(), fraction.into())?;
        self.0.session.drained().await;
        Ok(())
    }

    /// Reports progress without waiting until the event is on its way.
    #[doc(hidden)]
    pub fn show_progress(&self, message: String, fraction: Option<f64>) -> Result<(), ToolError> {
        self.extend_time_limit();
        let mut content = JsonObject::from_iter([
            ("toolCallId".to_owned(), self.call_id().as_str().into()),
            ("toolName".to_owned(), self.tool_name().into()),
            ("message".to_owned(), message.into()),
        ]);
        if let Some(fraction) = fraction {
            content.insert("fraction".to_owned(), fraction.clamp(0.0, 1.0).into());
        }
        let id = MessageId::from(format!("progress-{}", self.call_id()));
        self.0.session.emit(ActivitySnapshot::new(id, TOOL_PROGRESS, content).into())
    }

    /// Lets the agent's time limit for a call begin again.
    #[doc(hidden)]
    pub fn extend_time_limit(&self) {
        self.0.progressed.notify_one();
    }

    /// Completes when the call has reported progress since the last time.
    #[doc(hidden)]
    pub async fn progressed(&self) {
        self.0.progressed.notified().await;
    }

    /// Asks a person, and returns the reply.
    ///
    /// Without a reply yet this is an error, which the tool passes on with `?`: the run ends with an interrupt, and
    /// the next run calls the tool again. **What stands before `ask` runs again**, so side effects belong after it.
    /// Questions are told apart by their [key](Question::key), or else by their order.
    ///
    /// # Errors
    /// While there is no reply, and if the person declined to reply, which the model is told.
    pub async fn ask(&self, question: impl Into<Question>) -> Result<Value, ToolError> {
        let question = question.into();
        let text = question.text().to_owned();
        match self.reply_to(question)? {
            Some(value) => Ok(value),
            None => {
                Err(ToolError::new(format!("the user declined to answer the question {text:?}")))
            }
        }
    }

    /// Returns the reply to a question; `None` if the person declined to reply. A missing reply is
    /// an error, as for [`ask`](Self::ask).
    #[doc(hidden)]
    pub fn reply_to(&self, question: Question) -> Result<Option<Value>, ToolError> {
        let mut questions = self.0.questions.lock();
        let key = question.key.clone().unwrap_or_else(|| {
            questions.unnamed += 1;
            questions.unnamed.to_string()
        });
        if let Some(given) = self.given_reply(&key) {
            return Ok(given);
        }
        let interrupt = self.0.replies.interrupt(&key, question, self.call_id())?;
        if questions.open.iter().all(|open| open.id != interrupt.id) {
            questions.open.push(interrupt);
        }
        Err(ToolError::question())
    }

    /// Asks several questions at once. The next call gets the value `kept`, and the replies to
    /// these questions alone.
    #[doc(hidden)]
    pub fn ask_and_keep(&self, questions: Vec<Question>, kept: Value) -> ToolError {
        let replies = self.0.replies.keeping(kept);
        let mut open = self.0.questions.lock();
        for question in questions {
            let key = question.key.clone().unwrap_or_default();
            match replies.interrupt(&key, question, self.call_id()) {
                Ok(interrupt) => open.open.push(interrupt),
                Err(error) => return error,
            }
        }
        ToolError::question()
    }

    /// Keeps a value for the call, in the log of a detached run: another server that continues the
    /// run calls the tool with it, even if the call may not be repeated.
    #[doc(hidden)]
    pub fn keep_in_log(&self, value: Value) {
        self.run().mark(json!({ "kept": KeptValue { call: self.call_id().clone(), value } }));
    }

    /// Returns the value that an earlier call has kept.
    #[doc(hidden)]
    pub fn kept(&self) -> Option<&Value> {
        self.0.replies.kept.as_ref()
    }

    /// Returns the reply to the question of a key; `Some(None)` if the person declined to reply.
    #[doc(hidden)]
    pub fn given_reply(&self, key: &str) -> Option<Option<Value>> {
        self.0.replies.get(key).map(|reply| match reply {
            UserReply::Resolved(value) => Some(value.clone()),
            UserReply::Cancelled => None,
        })
    }

    /// Asks a person for a value of a type. Front ends get the schema of the type.
    ///
    /// # Errors
    /// Like [`ask`](Self::ask), and if the reply is not of the type.
    pub async fn ask_for<T: DeserializeOwned + JsonSchema>(
        &self,
        question: impl Into<Question>,
    ) -> Result<T, ToolError> {
        let reply = self.ask(question.into().expecting::<T>()).await?;
        serde_json::from_value(reply).map_err(|error| {
            ToolError::new(format!("the user's answer does not fit the question: {error}"))
        })
    }

    /// The surroundings of a call in a test: thread `t`, run `r`, call `c`, no principal, the state `{}`.
    pub fn for_test(tool: impl Into<String>) -> Self {
        Self::new(RunContext::new("t", "r", "test"), json!({}), "c", tool)
    }

    /// Takes the events that the call has emitted and no stream has taken, for tests of a tool.
    pub fn take_events(&self) -> Vec<Event> {
        self.0.session.take_events()
    }

    /// Takes the questions that have no reply yet: the interrupts to end the run with when the call fails with an
    /// error for which [`ToolError::is_question`] is true.
    pub fn take_questions(&self) -> Vec<Interrupt> {
        std::mem::take(&mut self.0.questions.lock().open)
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", self.call_id())
            .field("tool", &self.0.tool)
            .field("run", self.run())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_share_an_idempotency_key() {
        let run = || RunContext::new("t", "r", "a");
        let key = |run: &RunContext, id: &str, tool: &str, arguments: Value| {
            let session = ToolSession::new(run.clone(), json!({}));
            let arguments = arguments.as_object().unwrap();
            let cx = ToolContext::for_call(
                session,
                id.into(),
                tool.to_owned(),
                arguments,
                CallReplies::default(),
            );
            cx.idempotency_key().to_owned()
        };
        let (first, again) = (run(), run());
        let of_first = key(&first, "call_0", "put", json!({ "a": 1, "b": 2 }));
        assert_eq!(
            key(&first, "call_0", "put", json!({ "b": 2, "a": 1 })),
            of_first,
            "another attempt"
        );
        for other in [
            key(&again, "call_0", "put", json!({ "a": 1, "b": 2 })),
            key(&first, "call_0", "put", json!({ "a": 1, "b": 3 })),
            key(&first, "call_0", "pay", json!({ "a": 1, "b": 2 })),
            key(&first, "call_1", "put", json!({ "a": 1, "b": 2 })),
        ] {
            assert_ne!(other, of_first);
        }
    }
}
