//! A server with an agent that does what the last message of the user says.

use std::sync::{Arc, Mutex};

use agui_server::{
    Server,
    agent::emit::{TextMessage, ToolCallEvents},
    prelude::*,
    protocol::{Interrupt, JsonObject, ResumeStatus},
    store::MemoryStore,
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::support::Running;

/// Control characters of a hostile server: they clear the screen, write to the clipboard, and
/// change colours and direction.
pub const HOSTILE: &str = "begin\x1b[2J\x1b]52;c;AAAA\x07\u{9b}31m\r\x08\u{202e}end";

/// The inputs of an agent's runs.
#[derive(Clone, Default)]
pub struct Desk {
    inputs: Arc<Mutex<Vec<RunAgentInput>>>,
    /// Lets a run that should *approve later* ask its question.
    pub question: Arc<Notify>,
}

impl Desk {
    pub async fn serve(&self) -> Running {
        Running::start(self.server()).await
    }

    pub fn server(&self) -> Server {
        let desk = self.clone();
        let agent =
            agent_fn(move |input: RunAgentInput, out: Emitter| answer(desk.clone(), input, out));
        Server::new().agent("desk", agent).store(MemoryStore::default())
    }

    pub fn texts(&self, run: usize) -> Vec<String> {
        let inputs = self.inputs.lock().unwrap();
        inputs[run].messages.iter().map(text_of).collect()
    }

    pub fn runs(&self) -> usize {
        self.inputs.lock().unwrap().len()
    }
}

fn text_of(message: &Message) -> String {
    let value = serde_json::to_value(message).unwrap();
    value["content"].as_str().unwrap_or_default().to_owned()
}

async fn answer(desk: Desk, input: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
    let run = {
        let mut inputs = desk.inputs.lock().unwrap();
        inputs.push(input.clone());
        inputs.len()
    };
    if let Some(entry) = input.resume.first() {
        let payload = entry.payload.clone().unwrap_or_default();
        let status = if entry.status == ResumeStatus::Cancelled { "cancelled" } else { "answered" };
        return out.text(format!("{status} {payload}")).await;
    }
    match input.last_user_text().unwrap_or_default().as_ref() {
        "fail" => Err(AgentError::new("desk_closed", "the desk is closed")),
        "work" => {
            out.reasoning("Where may it be?").await?;
            out.text("Let me look.").await?;
            out.call("find", json!({ "order": 7 })).await?.result("in the hall").await?;
            out.set_state(json!({ "step": 1 })).await?;
            out.text("It is in the hall.").await
        }
        "hostile" => {
            out.text(HOSTILE).await?;
            out.reasoning(HOSTILE).await?;
            out.call(HOSTILE, json!({ HOSTILE: HOSTILE })).await?.result(HOSTILE).await?;
            out.set_state(json!({ "a": HOSTILE })).await?;
            out.custom(HOSTILE, HOSTILE).await?;
            ask(
                &out,
                HOSTILE,
                json!({ "properties": { HOSTILE: { "enum": [HOSTILE], "description": HOSTILE } } }),
            )
            .await
        }
        "hostile failure" => Err(AgentError::new(HOSTILE, HOSTILE)),
        "form" => {
            let schema = json!({
                "type": "object",
                "properties": {
                    "size": { "enum": ["S", "L"] },
                    "gift": { "type": "boolean" },
                    "number": { "type": "integer", "minimum": 1 },
                    "to": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] },
                    "tags": { "type": "array" },
                },
                "required": ["size", "gift", "number", "to"],
            });
            ask(&out, "Which one?", schema).await
        }
        "approve" => approval(&out).await,
        "approve later" => {
            desk.question.notified().await;
            approval(&out).await
        }
        "endless" => {
            let mut text = out.text_message().await?;
            text.push("It begins").await?;
            std::future::pending().await
        }
        "chart" => {
            out.file("chart.csv", "text/csv", Bytes::from_static(b"1;2\n")).await?;
            out.text("Here it is.").await
        }
        "mixed" => {
            let (one, two) = (TextMessage::new(), TextMessage::new());
            let events =
                [one.start(), two.start(), two.delta("sec"), one.delta("fi"), two.delta("ond")];
            out.events(events.into_iter().chain([two.end(), one.delta("rst"), one.end()])).await
        }
        text => out.text(format!("{run}: {text}")).await,
    }
}

async fn ask(out: &Emitter, message: &str, schema: Value) -> Result<(), AgentError> {
    let schema: Option<JsonObject> = schema.as_object().cloned();
    let interrupt = Interrupt {
        message: Some(message.to_owned()),
        response_schema: schema,
        ..Interrupt::new("input")
    };
    out.interrupt([interrupt]).await
}

async fn approval(out: &Emitter) -> Result<(), AgentError> {
    let call = ToolCallEvents::new("send_email");
    out.events(call.whole(&json!({ "to": "Ann" }))).await?;
    let schema = json!({
        "type": "object",
        "properties": { "approved": { "type": "boolean" }, "editedArgs": { "type": "object" }, "reason": { "type": "string" } },
        "required": ["approved"],
    });
    let interrupt = Interrupt {
        message: Some("Send it?".to_owned()),
        tool_call_id: Some(call.id().clone()),
        response_schema: schema.as_object().cloned(),
        ..Interrupt::new("tool_call")
    };
    out.interrupt([interrupt]).await
}
