//! [`Emitter`]: the events of a run as calls to await.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::{
    AgentError, RunContext,
    emit::{self, ReasoningSpan, Step, TextMessage, ToolCallEvents, state},
    event_queue::EventQueue,
};
use crate::files::SharedFile;
use agui_protocol::{
    Event, Interrupt, JsonObject, MessageContent, MessageId, ToolCallId,
    event::{
        ActivityDelta, ActivitySnapshot, Custom, ReasoningMessageContent, StateDelta,
        TextMessageContent,
    },
    host::JsonPatch,
};

/// Sends the events of one run. Cheap to clone.
///
/// Each call completes when the server has taken the events, so an agent is as slow as its client reads. A message is
/// closed when its writer is dropped, everything else when the run ends.
///
/// ```
/// use agui_agent::{Agent, AgentError, Emitter, RunContext, agent_fn};
/// use agui_protocol::RunAgentInput;
/// use serde_json::json;
///
/// async fn clerk(input: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
///     out.reasoning("I have to look into the stock.").await?;
///     let call = out.call("read_stock", json!({ "item": input.last_user_text() })).await?;
///     call.result("two").await?;
///     out.set_state(json!({ "stock": 2 })).await?;
///
///     let mut message = out.text_message().await?;
///     for word in ["We ", "have ", "two."] {
///         message.push(word).await?;
///     }
///     message.end().await
/// }
/// # use futures::StreamExt as _;
/// # let input = RunAgentInput::new("t", "r", vec![]);
/// # let events = agent_fn(clerk).run(input, RunContext::new("t", "r", "clerk"));
/// # let events: Vec<_> = futures::executor::block_on(events.collect());
/// # assert_eq!(events.len(), 5 + 4 + 1 + 5);
/// ```
///
/// # Errors
/// If the run has ended. Only a spawned task sees this error, because the agent's future is dropped
/// with the run.
#[derive(Clone)]
pub struct Emitter(pub(super) Arc<EmitterParts>);

pub(super) struct EmitterParts {
    pub(super) queue: EventQueue,
    context: RunContext,
}

impl Emitter {
    pub(super) fn new(context: RunContext) -> Self {
        Self(Arc::new(EmitterParts { queue: EventQueue::default(), context }))
    }

    /// The run's ids, its principal and the forwarded headers.
    pub fn context(&self) -> &RunContext {
        &self.0.context
    }

    /// Sends a whole text message.
    pub async fn text(&self, text: impl Into<String>) -> Result<(), AgentError> {
        self.events(TextMessage::whole(text)).await
    }

    /// Opens a text message that is sent in pieces.
    pub async fn text_message(&self) -> Result<TextWriter, AgentError> {
        let message = TextMessage::new();
        self.event(message.start()).await?;
        Ok(TextWriter {
            id: message.id().clone(),
            delta: |id, text| TextMessageContent::new(id, text).into(),
            end: self.close_with([message.end()]),
        })
    }

    /// Sends a whole span of reasoning.
    pub async fn reasoning(&self, text: impl Into<String>) -> Result<(), AgentError> {
        self.events(ReasoningSpan::whole(text)).await
    }

    /// Opens a span of reasoning that is sent in pieces.
    pub async fn reasoning_span(&self) -> Result<TextWriter, AgentError> {
        let span = ReasoningSpan::new();
        self.events(span.start()).await?;
        Ok(TextWriter {
            id: span.message_id().clone(),
            delta: |id, text| ReasoningMessageContent::new(id, text).into(),
            end: self.close_with(span.end()),
        })
    }

    /// Sends a whole tool call. For an own tool, send the [result](ToolCallHandle::result). For a
    /// client's tool, return after the call: the client's next run brings the result.
    pub async fn call(
        &self,
        tool: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<ToolCallHandle, AgentError> {
        let call = ToolCallEvents::new(tool);
        let arguments = serde_json::to_string(&arguments)?;
        self.events([call.start(), call.delta(arguments), call.end()]).await?;
        Ok(ToolCallHandle { out: self.clone(), call })
    }

    /// Replaces the state that agent and client share.
    pub async fn set_state(&self, state: impl Serialize) -> Result<(), AgentError> {
        self.event(state::snapshot(serde_json::to_value(state)?)).await
    }

    /// Changes parts of the state: all operations apply, or none does. Takes a list of
    /// [`PatchOperation`](agui_protocol::PatchOperation), or a JSON Patch such as
    /// `json!([{ "op": "replace", "path": "/stock", "value": 1 }])`.
    pub async fn patch_state(&self, patch: impl Serialize) -> Result<(), AgentError> {
        self.event(StateDelta::new(read_patch(patch)?)).await
    }

    /// Runs a future as a step. The step is closed even if the future fails.
    pub async fn step<T>(
        &self,
        name: impl Into<String>,
        work: impl Future<Output = Result<T, AgentError>>,
    ) -> Result<T, AgentError> {
        let step = Step::new(name);
        self.event(step.start()).await?;
        let end = self.close_with([step.finish()]);
        let result = work.await;
        end.send().await?;
        result
    }

    /// Creates an activity: progress that the client shows as a widget of the kind `activity_type`.
    pub async fn activity(
        &self,
        activity_type: impl Into<String>,
        content: JsonObject,
    ) -> Result<ActivityHandle, AgentError> {
        let activity = ActivityHandle {
            out: self.clone(),
            id: MessageId::random(),
            activity_type: activity_type.into(),
        };
        activity.replace(content).await?;
        Ok(activity)
    }

    /// Hands a file over to the user, such as a chart or a report: as an activity
    /// `agui-server.file`, which has the file's URL. The thread keeps the file. A model gets an
    /// image with the next message of the user. The type is read from the bytes if they show it.
    ///
    /// # Errors
    /// `file_too_large` and the other codes of `POST /files`. If the store keeps no files, the event has the bytes, or a
    /// `problem` if they are more than about 3 MiB.
    pub async fn file(
        &self,
        name: impl Into<String>,
        media_type: impl Into<String>,
        bytes: impl Into<Bytes>,
    ) -> Result<(), AgentError> {
        let file = SharedFile {
            bytes: bytes.into(),
            media_type: media_type.into(),
            name: Some(name.into()),
        };
        let event = file.into_event(self.context().files()).await?;
        self.event(event).await
    }

    /// Sends an application's own event.
    pub async fn custom(
        &self,
        name: impl Into<String>,
        value: impl Serialize,
    ) -> Result<(), AgentError> {
        self.event(Custom::new(name, serde_json::to_value(value)?)).await
    }

    /// Ends the run to ask for something from outside, such as an approval. The next run has the replies in
    /// [`RunAgentInput::resume`](agui_protocol::RunAgentInput). Code after this call does not run.
    pub async fn interrupt(
        &self,
        interrupts: impl IntoIterator<Item = Interrupt>,
    ) -> Result<(), AgentError> {
        self.event(emit::interrupt(self.context(), interrupts.into_iter().collect())).await
    }

    /// Ends the run successfully with a return value. Code after this call does not run.
    pub async fn finish(&self, result: impl Into<Value>) -> Result<(), AgentError> {
        self.event(emit::finish(self.context(), result)).await
    }

    /// Sends any event.
    pub async fn event(&self, event: impl Into<Event>) -> Result<(), AgentError> {
        self.events([event.into()]).await
    }

    /// Sends events that belong together: no clone of this emitter sends anything between them.
    ///
    /// # Errors
    /// `run_ended`; `too_many_events`, and none of them is sent, if more than 65,536 would wait for the client.
    pub async fn events(&self, events: impl IntoIterator<Item = Event>) -> Result<(), AgentError> {
        self.0.queue.send(events).await
    }

    fn close_with<const N: usize>(&self, events: [Event; N]) -> CloseOnDrop {
        CloseOnDrop { out: self.clone(), events: events.into() }
    }
}

impl fmt::Debug for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Emitter").field(&self.0.context).finish()
    }
}

/// A text message or a span of reasoning that is sent in pieces. Dropping it ends the message.
#[derive(Debug)]
#[must_use = "a message ends when its writer is dropped"]
pub struct TextWriter {
    id: MessageId,
    delta: fn(MessageId, String) -> Event,
    end: CloseOnDrop,
}

impl TextWriter {
    /// The message's id.
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Appends text. Empty text sends nothing.
    pub async fn push(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        // AG-UI forbids empty deltas.
        let text = Some(text.into()).filter(|text| !text.is_empty());
        self.end.out.events(text.map(|text| (self.delta)(self.id.clone(), text))).await
    }

    /// Ends the message.
    pub async fn end(self) -> Result<(), AgentError> {
        self.end.send().await
    }
}

/// A tool call that was sent.
#[derive(Debug)]
pub struct ToolCallHandle {
    out: Emitter,
    call: ToolCallEvents,
}

impl ToolCallHandle {
    /// The call's id.
    pub fn id(&self) -> &ToolCallId {
        self.call.id()
    }

    /// Sends the result of one of the agent's own tools.
    pub async fn result(self, content: impl Into<MessageContent>) -> Result<(), AgentError> {
        self.out.event(self.call.result(content)).await
    }
}

/// An activity that was created.
#[derive(Debug)]
pub struct ActivityHandle {
    out: Emitter,
    id: MessageId,
    activity_type: String,
}

impl ActivityHandle {
    /// The id of the activity's message.
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Replaces the activity's content.
    pub async fn replace(&self, content: JsonObject) -> Result<(), AgentError> {
        self.out
            .event(ActivitySnapshot::new(self.id.clone(), self.activity_type.clone(), content))
            .await
    }

    /// Changes parts of the activity's content: all operations apply, or none does.
    ///
    /// Takes the same as [`Emitter::patch_state`].
    pub async fn patch(&self, patch: impl Serialize) -> Result<(), AgentError> {
        let patch = read_patch(patch)?;
        self.out.event(ActivityDelta::new(self.id.clone(), self.activity_type.clone(), patch)).await
    }
}

#[derive(Debug)]
struct CloseOnDrop {
    out: Emitter,
    events: Vec<Event>,
}

impl CloseOnDrop {
    async fn send(mut self) -> Result<(), AgentError> {
        self.out.events(std::mem::take(&mut self.events)).await
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        // Without room for these, the run's guard closes what is open.
        let _ = self.out.0.queue.push(std::mem::take(&mut self.events));
    }
}

/// Fails if the JSON is not a JSON Patch (RFC 6902).
fn read_patch(patch: impl Serialize) -> Result<JsonPatch, AgentError> {
    Ok(serde_json::from_value(serde_json::to_value(patch)?)?)
}
