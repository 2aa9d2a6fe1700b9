//! `POST /v1/chat/completions`: a request becomes a run beside any thread, and the run an answer.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
};
use sha2::{Digest as _, Sha256};

use super::{
    answer::{CompletionReader, read_answer},
    chunks::{AnswerHead, ChatCompletion, ChatCompletionChunk, ChunkEncoder, ChunkWriter},
    error::{ErrorBody, FailedRunResponses},
    keyed::{KeyUse, KeyedAnswers, key_of, respond_whole},
    request::{CompletionInput, CompletionRequest},
};
use crate::http::{
    ApiResult, App, ClientEncoder,
    client::Wishes,
    read_run::{find_agent, read_run},
    refuse,
    run_document::events,
    run_response::respond_run,
};
use agui_agent::host::AgentEntry;
use agui_protocol::encode::Encoder;

/// Answers a conversation with an agent.
///
/// Nothing is stored, and the run ends with its client, unless the request has an `Idempotency-Key`.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    params(("Idempotency-Key" = Option<String>, Header, description = "For ten minutes after the answer, another request with this key and the same body gets the same answer.")),
    request_body = CompletionRequest,
    responses(
        (status = 200, description = "The answer, or with `stream` its chunks.", content(
            (ChatCompletion<'_> = "application/json"), (ChatCompletionChunk<'_> = "text/event-stream"),
        )),
        (status = 502, description = "The run failed. The `code` is that of the run.", body = ErrorBody<'_>),
        FailedRunResponses, refuse::Agent, refuse::Body, refuse::Completion, refuse::Limits, refuse::Parameter,
        refuse::Start, refuse::Store,
    ),
)]
pub(super) async fn create_chat_completion(
    State(app): State<App>,
    Extension(keys): Extension<Arc<KeyedAnswers>>,
    request: Request,
) -> ApiResult {
    let key = key_of(request.headers())?;
    // The values of such a request are not told apart: all count as open.
    let (read, (request, digest)) = read_run(&app, request, |body| {
        Ok(((CompletionRequest::read(body)?, Sha256::digest(body).into()), usize::MAX))
    })
    .await?;
    let agent = find_agent(&app, request.model.as_deref())?;
    let (is_stream, includes_usage) = (request.is_stream(), request.includes_usage());
    let accepts_instructions = app.threads.core.options.accept_instructions;
    let CompletionInput { input, tools, is_json } = request.into_input(accepts_instructions)?;
    let reader = CompletionReader::new(tools, is_json || answers_with_value(&agent));
    let head = AnswerHead::new(agent.name());
    let caller = read.caller()?.clone();
    let run = read.into_request(&app, agent, input, &Wishes::default())?;
    let Some(key) = key else {
        let started = app.runs.start_beside_thread(run)?;
        if !is_stream {
            // An error has a status, so nothing is sent before the end. If the client leaves, the run
            // ends.
            let mut text = String::new();
            let events = events(started, app.threads.clone());
            let end = read_answer(reader, events, |piece| text.push_str(piece)).await;
            return Ok(respond_whole(&head, &text, &end));
        }
        let writer = ChunkWriter::new(head, includes_usage);
        let encoder = Encoder::Dialect(Box::new(ChunkEncoder { reader, writer }));
        let encoder = ClientEncoder::new(&app, &caller, encoder).await;
        return Ok(respond_run(&app, started, encoder).await);
    };
    let key = (caller.owner(), key);
    let answer = match keys.enter(&key, digest, head)? {
        KeyUse::Known(answer) => {
            // The permit of a run that is not started.
            drop(run);
            answer
        }
        KeyUse::New(answer) => {
            let started = app.runs.start_beside_thread(run).inspect_err(|_| keys.forget(&key))?;
            let (made, events) = (answer.clone(), events(started, app.threads.clone()));
            tokio::spawn(async move { keys.make(&key, &made, reader, events).await });
            answer
        }
    };
    Ok(match is_stream {
        true => answer.stream(includes_usage, app.options.keep_alive, caller.principal.as_ref()),
        false => answer.document().await,
    })
}

/// Returns whether the agent checks its answers, which it may say twice.
fn answers_with_value(agent: &AgentEntry) -> bool {
    agent.capabilities().output.is_some_and(|output| output.structured_output == Some(true))
}
