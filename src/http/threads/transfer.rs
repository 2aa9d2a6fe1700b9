//! `GET /threads/{thread}/export` and `POST /threads/import`: a thread with everything that is stored of it, as JSON.

use std::collections::HashMap;

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{
    list::ThreadSummaryJson,
    pages::{TimeText, time},
};
use crate::{
    auth::owner_of,
    base::text::shortened,
    files::InPlaceOfFile,
    http::{ApiError, ApiResult, App, OwnThreads, Path, Query, read_body, refuse},
    protocol::{
        Interrupt, JsonObject, Message, ResumeEntry, RunId, ThreadId, TokenUsage,
        decode::{count_values, decode_value},
    },
    run::RequestSize,
    store::{CopiedMessage, CopiedRun, Feedback, Millis, RunFailure, RunRecord, RunStatus, ThreadContent, now},
};

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ThreadExport)]
pub(crate) struct ExportJson {
    thread_id: ThreadId,
    agent: String,
    /// `null` or absent if it has none.
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: JsonObject,
    created_at: TimeText,
    updated_at: TimeText,
    /// The number of the last message of the current branch: messages are numbered from 1.
    head: i64,
    /// A position in `states`, as in the runs, or `null`.
    #[serde(default)]
    state: Option<usize>,
    #[serde(default)]
    interrupts: Vec<Interrupt>,
    /// Numbered from 1.
    messages: Vec<ExportedMessage>,
    #[serde(default)]
    states: Vec<Value>,
    #[serde(default)]
    runs: Vec<ExportedRun>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExportedMessage {
    /// The number of the message before it; 0 for the first one.
    parent: i64,
    /// The run that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    message: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    feedback: Option<FeedbackJson>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = Feedback)]
pub(super) struct FeedbackJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    at: TimeText,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExportedRun {
    run_id: RunId,
    agent: String,
    #[schema(pattern = "^(finished|interrupted|cancelled|failed)$")]
    status: String,
    started_at: TimeText,
    ended_at: TimeText,
    #[serde(default)]
    events: u64,
    #[serde(default)]
    delivered: bool,
    /// The number of the last message of its branch.
    head: i64,
    /// A position in `states`, or `null`.
    #[serde(default)]
    state: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    interrupts: Vec<Interrupt>,
    /// The replies that it brought, in short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    answered: Vec<ResumeEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    usage: Vec<TokenUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RunFailure>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// `inline`: the data of files, the newest 64 MiB, in place of their URLs, which expire.
    #[param(value_type = Option<String>, pattern = "^(url|inline)$")]
    files: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ImportQuery {
    /// The id of the thread. That of the export by default.
    #[param(value_type = Option<String>)]
    thread_id: Option<ThreadId>,
}

/// Returns everything that is stored of a thread.
///
/// These are all branches, states and runs. Logs of detached runs, and a run that has not ended, are left out.
#[utoipa::path(
    get,
    path = "/threads/{thread}/export",
    params(ExportQuery),
    responses(
        (status = 200, description = "The thread.", body = ExportJson),
        refuse::Limits, refuse::Parameter, refuse::ResponseMemory, refuse::Store, refuse::Thread, refuse::Url,
    ),
)]
pub(crate) async fn export_thread(
    State(app): State<App>,
    Path(id): Path<ThreadId>,
    Query(query): Query<ExportQuery>,
    own: OwnThreads,
) -> ApiResult {
    let loads_files = match query.files.as_deref() {
        None | Some("url") => false,
        Some("inline") => true,
        Some(_) => return Err(ApiError::InvalidParameter { name: "files", expected: "`url` or `inline`" }),
    };
    let mut permit = app.response_permit(own.owner(), &id).await?;
    let mut content = own.threads.export(own.owner(), &id).await?;
    if let Some(files) = own.threads.files().filter(|_| loads_files) {
        let messages = content.messages.iter_mut().map(|copied| &mut copied.message).collect();
        let loading = files.loading(&owner_of(own.owner()), messages).await?;
        permit = permit.and(app.runs().memory().copy(own.owner(), loading.bytes()).await?);
        loading.load(InPlaceOfFile::Name).await;
    }
    own.present(content.messages.iter_mut().map(|copied| &mut copied.message));
    permit.json(&ExportJson::new(id, content))
}

/// Creates a thread from an export.
///
/// Counts as a run for the limits of runs.
#[utoipa::path(
    post,
    path = "/threads/import",
    params(ImportQuery),
    request_body = ExportJson,
    responses(
        (status = 201, description = "The new thread.", body = ThreadSummaryJson),
        refuse::Body, refuse::Copy, refuse::Limits, refuse::Store, refuse::Url,
    ),
)]
pub(crate) async fn import_thread(
    State(app): State<App>,
    Query(query): Query<ImportQuery>,
    own: OwnThreads,
    request: Request,
) -> ApiResult<(StatusCode, Json<ThreadSummaryJson>)> {
    let (head, body) = request.into_parts();
    app.runs().check_limits(own.owner())?;
    let body = read_body::read(&app, &head, body).await?;
    let size = RequestSize { body_bytes: body.len(), values: count_values(&body)? };
    let _permit = app.runs().reserve(own.owner())?;
    let _memory = app.runs().memory().request(own.owner(), size).await?;
    let json = decode_value(&body)?;
    drop(body);
    let export: ExportJson = serde_json::from_value(json).map_err(|error| {
        let problem = error.to_string();
        ApiError::invalid_input("", &format!("the JSON of an export: {}", shortened(&problem, 200)))
    })?;
    let id = query.thread_id.unwrap_or_else(|| export.thread_id.clone());
    let thread = own.threads.import(own.owner(), id, export.into_content()?).await?;
    Ok((StatusCode::CREATED, Json(thread.into())))
}

impl ExportJson {
    fn new(thread_id: ThreadId, content: ThreadContent) -> Self {
        let run_ids: Vec<_> = content.runs.iter().map(|run| run.record.id.clone()).collect();
        let messages = content.messages.into_iter().map(|copied| ExportedMessage {
            parent: copied.parent,
            run_id: copied.run.and_then(|run| run_ids.get(run).cloned()),
            message: copied.message,
            feedback: copied.feedback.map(FeedbackJson::from),
        });
        Self {
            thread_id,
            agent: content.agent,
            title: content.title,
            archived: content.archived,
            metadata: content.metadata,
            created_at: time(content.created_at),
            updated_at: time(content.updated_at),
            head: content.head,
            state: content.state,
            interrupts: content.interrupts,
            messages: messages.collect(),
            states: content.states,
            runs: content.runs.into_iter().map(ExportedRun::from).collect(),
        }
    }

    fn into_content(self) -> ApiResult<ThreadContent> {
        let runs = self.runs.into_iter().enumerate().map(|(at, run)| run.into_copied(&format!("runs[{at}]")));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let positions: HashMap<_, _> = runs.iter().enumerate().map(|(at, run)| (run.record.id.clone(), at)).collect();
        let messages = self.messages.into_iter().enumerate().map(|(at, message)| {
            let feedback =
                message.feedback.map(|it| it.into_feedback(&format!("messages[{at}].feedback"))).transpose()?;
            let run = message.run_id.and_then(|run| positions.get(&run).copied());
            Ok(CopiedMessage { parent: message.parent, run, message: message.message, feedback })
        });
        Ok(ThreadContent {
            agent: self.agent,
            title: self.title,
            archived: self.archived,
            metadata: self.metadata,
            head: self.head,
            state: self.state,
            interrupts: self.interrupts,
            messages: messages.collect::<Result<_, ApiError>>()?,
            states: self.states,
            runs,
            created_at: millis("createdAt", &self.created_at)?,
            updated_at: millis("updatedAt", &self.updated_at)?,
        })
    }
}

impl ExportedRun {
    fn into_copied(self, path: &str) -> ApiResult<CopiedRun> {
        let mut ended = RunStatus::ALL.into_iter().filter(|status| *status != RunStatus::Running);
        let status = ended.find(|status| status.as_str() == self.status);
        let status =
            status.ok_or_else(|| ApiError::invalid_input(&format!("{path}.status"), "the status of an ended run"))?;
        let record = RunRecord {
            number: 0,
            thread: 0,
            id: self.run_id,
            agent: self.agent,
            detached: false,
            status,
            delivered: self.delivered,
            started_at: millis(&format!("{path}.startedAt"), &self.started_at)?,
            ended_at: Some(millis(&format!("{path}.endedAt"), &self.ended_at)?),
            events: self.events,
            usage: self.usage,
            failure: self.error,
            takeovers: 0,
        };
        let Self { head, state, interrupts, answered, .. } = self;
        Ok(CopiedRun { record, head, state, interrupts, answered })
    }
}

impl From<CopiedRun> for ExportedRun {
    fn from(run: CopiedRun) -> Self {
        let record = run.record;
        Self {
            run_id: record.id,
            agent: record.agent,
            status: record.status.as_str().to_owned(),
            started_at: time(record.started_at),
            ended_at: time(record.ended_at.unwrap_or(record.started_at)),
            events: record.events,
            delivered: record.delivered,
            head: run.head,
            state: run.state,
            interrupts: run.interrupts,
            answered: run.answered,
            usage: record.usage,
            error: record.failure,
        }
    }
}

impl FeedbackJson {
    fn into_feedback(self, path: &str) -> ApiResult<Feedback> {
        let at = millis(&format!("{path}.at"), &self.at)?;
        Ok(Feedback { score: self.score, comment: self.comment, at })
    }
}

impl From<Feedback> for FeedbackJson {
    fn from(feedback: Feedback) -> Self {
        Self { score: feedback.score, comment: feedback.comment, at: time(feedback.at) }
    }
}

/// A time in the future would keep the thread from removal by age.
fn millis(path: &str, TimeText(text): &TimeText) -> ApiResult<Millis> {
    let time = text.parse::<Timestamp>();
    let time = time.map_err(|_| ApiError::invalid_input(path, "a time such as 2026-01-31T12:00:00.000Z"))?;
    Ok(time.as_millisecond().min(now()))
}
