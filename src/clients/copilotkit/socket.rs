//! `GET /socket/websocket`: keeps CopilotKit's lists of threads current, over the channels of the Phoenix framework. Each
//! message is `[join_ref, ref, topic, event, payload]`, and a topic is the list of one agent's threads.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Extension, Json,
    extract::{
        State, WebSocketUpgrade,
        ws::{Message, WebSocket, rejection::WebSocketUpgradeRejection},
    },
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{agents::find_agent, join_token::JoinTokens, threads::CopilotThread};
use crate::http::{
    ApiError, ApiResult, App, Caller, Credential, Query, RouteAccess, RouteSet, Tag, at, refuse,
    sse_response::expiry, threads::pages::time,
};
use agui_agent::{Principal, host::owner_of};
use agui_protocol::{RunId, ThreadId};
use agui_run::host::{ChangedThread, ThreadChange, ThreadEvent};
use agui_store::{RunNumber, Thread, host::now};

/// The path below the prefix. The client appends `/websocket`.
pub(super) const SOCKET_PATH: &str = "/socket";
/// The prefix of a topic; the agent's name follows, as the client names the agent. It is the `joinCode` of the list.
const TOPIC_PREFIX: &str = "user_meta:";
/// The largest message of a client, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 * 1024;
/// The number of topics of a socket.
const MAX_CHANNELS: usize = 8;
/// The number of threads whose last notice a socket keeps.
const MAX_NOTICES: usize = 64;
/// A client sends a heartbeat every 30 seconds.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Returns the route of the handshake, which has no authentication but the token.
pub(super) fn route_set(tag: Tag, prefix: &str, tokens: Arc<JoinTokens>) -> RouteSet {
    let route = at(&format!("{prefix}{SOCKET_PATH}/websocket"), routes!(open_socket));
    let routes = OpenApiRouter::new().routes(route).layer(Extension(tokens));
    RouteSet::new(tag, RouteAccess::Public, routes).listing_only(prefix)
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CopilotJoinToken {
    join_token: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SocketQuery {
    /// The token of `POST /threads/subscribe`. Needed with authentication.
    #[serde(default)]
    join_token: String,
}

/// A joined topic.
struct Channel {
    topic: String,
    join_ref: Option<String>,
    /// The client's name for the agent.
    name: String,
    agent: String,
}

/// The last notices about runs, one of a thread, the newest last.
///
/// A tab takes no second notice about a `runId` for 30 seconds, also of its own runs. But CopilotKit replies to an interrupt
/// under the `runId` that asked: the notice about the reply has an id of its own, with which the other tabs read the thread.
#[derive(Default)]
struct Notices(VecDeque<Notice>);

struct Notice {
    thread: ThreadId,
    run_id: RunId,
    /// The number of the run in the store.
    number: RunNumber,
    id: String,
}

impl Notices {
    /// Returns the id of the run of a thread in a notice.
    fn id_of(&mut self, thread: &Thread) -> String {
        let last = self.0.iter().position(|notice| notice.thread == thread.key.id);
        let last = last.and_then(|at| self.0.remove(at));
        let id = match last {
            Some(last) if last.number == thread.run => last.id,
            Some(last) if last.run_id == thread.run_id => {
                format!("{}.{}", thread.run_id, thread.run)
            }
            _ => thread.run_id.to_string(),
        };
        if self.0.len() >= MAX_NOTICES {
            self.0.pop_front();
        }
        let (run_id, number) = (thread.run_id.clone(), thread.run);
        self.0.push_back(Notice { thread: thread.key.id.clone(), run_id, number, id: id.clone() });
        id
    }
}

/// Returns a token for the WebSocket.
///
/// Without authentication it is not checked.
#[utoipa::path(
    post,
    path = "/threads/subscribe",
    responses(
        (status = 200, description = "The token, which is valid for one hour at most, and not longer than the caller's credential.", body = CopilotJoinToken),
        refuse::Store,
    ),
)]
pub(super) async fn subscribe(
    State(app): State<App>,
    Extension(tokens): Extension<Arc<JoinTokens>>,
    Extension(caller): Extension<Caller>,
) -> ApiResult<Json<CopilotJoinToken>> {
    let token = match caller.principal {
        Some(principal) => tokens.issue(&principal, &tokens.signer(&app).await?, SystemTime::now()),
        None => "none".to_owned(),
    };
    Ok(Json(CopilotJoinToken { join_token: token }))
}

/// Reports changes of the caller's threads through a WebSocket.
#[utoipa::path(
    get,
    path = "/socket/websocket",
    params(SocketQuery),
    responses((status = 101, description = "The channels of the Phoenix framework."), refuse::Socket, refuse::Store, refuse::Url)
)]
async fn open_socket(
    State(app): State<App>,
    Extension(tokens): Extension<Arc<JoinTokens>>,
    Query(query): Query<SocketQuery>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult {
    let principal = if app.credential() != Credential::None {
        let signer = tokens.signer(&app).await?;
        let principal = tokens.check(&query.join_token, &signer, SystemTime::now());
        Some(principal.ok_or(ApiError::InvalidJoinToken)?)
    } else {
        None
    };
    let upgrade = upgrade.map_err(|_| ApiError::NoWebsocket)?;
    let permit = app.take_stream(principal.as_ref())?;
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(move |socket| async move {
        serve(socket, &app, principal).await;
        drop(permit);
    }))
}

async fn serve(mut socket: WebSocket, app: &App, caller: Option<Principal>) {
    let threads = &app.threads;
    let owner = owner_of(caller.as_ref());
    let mut events = threads.follow_changes(owner.clone());
    let (mut channels, mut expiry) = (Vec::new(), pin!(expiry(caller.as_ref())));
    let mut notices = Notices::default();
    // Only messages of the client move it: a client that is gone would keep its permit while its
    // threads change.
    let mut silent_until = Instant::now() + IDLE_TIMEOUT;
    loop {
        let messages = tokio::select! {
            () = &mut expiry => break,
            received = timeout_at(silent_until, socket.recv()) => {
                silent_until = Instant::now() + IDLE_TIMEOUT;
                match received {
                    Ok(Some(Ok(Message::Text(text)))) => match reply_to(&text, app, &mut channels) {
                        Some(reply) => vec![reply],
                        None => break,
                    },
                    Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
                    _ => break,
                }
            }
            event = events.next() => match event {
                // Without a channel, the thread is not read.
                Some(ThreadEvent::Changes(_)) if channels.is_empty() => continue,
                Some(ThreadEvent::Changes(changes)) => {
                    let thread = threads.changed(&owner, &changes).await;
                    let about = |change: &ThreadChange| messages_about(&changes.id, *change, &channels, thread, &mut notices);
                    changes.kinds.iter().flat_map(about).collect()
                }
                // The client has no message that makes it read its list again.
                Some(ThreadEvent::Missed) => continue,
                None => break,
            },
        };
        for message in messages {
            if socket.send(Message::Text(message.to_string().into())).await.is_err() {
                return;
            }
        }
    }
    let _ = timeout(Duration::from_secs(1), socket.send(Message::Close(None))).await;
}

/// Joins or leaves a topic. Returns the reply; `None` if the message is invalid.
fn reply_to(text: &str, app: &App, channels: &mut Vec<Channel>) -> Option<Value> {
    type Request = (Option<String>, Option<String>, String, String, IgnoredAny);
    let (join_ref, reference, topic, event, _) = serde_json::from_str::<Request>(text).ok()?;
    if matches!(event.as_str(), "phx_leave" | "phx_join") {
        channels.retain(|channel| channel.topic != topic);
    }
    let joined = || {
        let name = topic.strip_prefix(TOPIC_PREFIX)?;
        let agent = find_agent(app, name).ok()?.name().to_owned();
        Some(Channel {
            topic: topic.clone(),
            join_ref: join_ref.clone(),
            name: name.to_owned(),
            agent,
        })
    };
    let is_done = match event.as_str() {
        "heartbeat" | "phx_leave" => true,
        "phx_join" if channels.len() < MAX_CHANNELS => {
            joined().map(|channel| channels.push(channel)).is_some()
        }
        _ => false,
    };
    let status = if is_done { "ok" } else { "error" };
    Some(json!([join_ref, reference, topic, "phx_reply", { "status": status, "response": {} }]))
}

/// Returns the messages about a change of a thread.
fn messages_about(
    id: &ThreadId,
    change: ThreadChange,
    channels: &[Channel],
    thread: &ChangedThread,
    notices: &mut Notices,
) -> Vec<Value> {
    let metadata = |channel: &Channel, operation: &str, member: &str, value: Value| {
        let mut payload = json!({
            "operation": operation, "threadId": id, "userId": "", "organizationId": "", "occurredAt": time(now()),
        });
        payload[member] = value;
        channel.push("thread_metadata", payload)
    };
    if change == ThreadChange::Deleted {
        return channels
            .iter()
            .map(|channel| metadata(channel, "deleted", "deleted", json!({ "id": id })))
            .collect();
    }
    // Its deletion is a change of its own.
    let ChangedThread::Summary(thread) = thread else { return Vec::new() };
    let operation = match change {
        // A list without archived threads removes the thread.
        _ if thread.archived => "archived",
        ThreadChange::Created => "created",
        ThreadChange::Renamed => "renamed",
        ThreadChange::Unarchived => "unarchived",
        _ => "updated",
    };
    let mut messages = Vec::new();
    let run = (change == ThreadChange::Begun).then(|| notices.id_of(thread));
    for channel in channels.iter().filter(|channel| channel.agent == thread.agent) {
        let record = CopilotThread::new((**thread).clone(), Some(&channel.name));
        messages.push(metadata(channel, operation, "thread", json!(record)));
        if let Some(run) = &run {
            // Other tabs that show the thread connect to the run.
            let activity = json!({ "threadId": id, "agentId": channel.name, "runId": run, "eventType": "RUN_STARTED" });
            messages.push(channel.push("thread_run_activity", activity));
        }
    }
    messages
}

impl Channel {
    fn push(&self, event: &str, payload: Value) -> Value {
        json!([self.join_ref, null, self.topic, event, payload])
    }
}

#[cfg(test)]
mod tests;
