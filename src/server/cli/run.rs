//! `agui-server run`: one message to an agent, and its answer, for scripts and jobs. Asks for the run's document
//! (`http/run_document.rs`), which other servers do not have.

use std::{
    error::Error,
    io::{Read as _, stdin},
};

use reqwest::{
    Response,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    arguments::RunArguments,
    output::{print_line, print_warning},
    server_client::{next_piece, require_success, send},
    target::{RunTarget, UrlMeaning},
};
use agui_base::text::essence;
use agui_protocol::{Interrupt, Message};

const JSON: &str = "application/json";
const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// The members of a run's document that this command reads.
#[derive(Deserialize)]
struct Document {
    status: String,
    #[serde(default)]
    messages: Vec<Message>,
    outcome: Option<Outcome>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Outcome {
    #[serde(default)]
    interrupts: Vec<Interrupt>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

/// Returns `false` if the run did not succeed.
///
/// # Errors
/// The agent cannot be asked.
pub(super) async fn run_once(arguments: RunArguments) -> Result<bool, Box<dyn Error>> {
    let text = match arguments.text.as_deref() {
        Some("-") | None => {
            let mut text = String::new();
            stdin().read_to_string(&mut text)?;
            text
        }
        Some(text) => text.to_owned(),
    };
    let target = RunTarget::open(
        "--server",
        arguments.url.as_deref(),
        UrlMeaning::Server,
        &arguments.target,
    )
    .await?;
    let result = ask(&target, &arguments, &text).await;
    target.close().await;
    let document = result?;
    if arguments.json {
        print_line(&serde_json::to_string_pretty(&document)?);
    }
    let document: Document = serde_json::from_value(document)?;
    if !arguments.json {
        document.messages.iter().filter_map(answer).for_each(print_line);
    }
    for interrupt in document.outcome.iter().flat_map(|outcome| &outcome.interrupts) {
        let question = interrupt.message.as_deref().unwrap_or(&interrupt.reason);
        print_warning(&format!("the agent asks: {question}"));
    }
    if let Some(error) = &document.error {
        print_warning(&format!("the run failed: {}", error.message));
    }
    Ok(document.status == "finished")
}

fn answer(message: &Message) -> Option<&str> {
    match message {
        Message::Assistant(message) => {
            message.content.as_deref().filter(|content| !content.is_empty())
        }
        _ => None,
    }
}

async fn ask(
    target: &RunTarget,
    arguments: &RunArguments,
    text: &str,
) -> Result<Value, Box<dyn Error>> {
    let new_id = || Uuid::new_v4().to_string();
    let thread = arguments.thread.clone().unwrap_or_else(new_id);
    let message = json!({ "id": new_id(), "role": "user", "content": text });
    let input = json!({
        "threadId": thread, "runId": new_id(), "messages": [message], "tools": [], "context": [], "state": null, "forwardedProps": {}
    });
    let request =
        target.client.post(target.url(Some(&arguments.agent))?).header(ACCEPT, JSON).json(&input);
    let response = require_success(send(target.authorized(request)).await?).await?;
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if essence(content_type) != JSON {
        return Err("the server answers with a stream only: use agui-server chat".into());
    }
    read_document(response).await
}

/// Reads a document, before which there are line ends while the run is running.
async fn read_document(mut response: Response) -> Result<Value, Box<dyn Error>> {
    let mut body = Vec::new();
    while let Some(piece) = next_piece(&mut response).await? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_DOCUMENT_BYTES {
            return Err(format!("the answer is longer than {MAX_DOCUMENT_BYTES} bytes").into());
        }
    }
    Ok(serde_json::from_slice(&body)
        .map_err(|error| format!("the server's response cannot be read: {error}"))?)
}
