//! A session with an MCP server: a process, or a server over HTTP. Only the files that implement a
//! session (`session`, `client`, `handler`, `http_client`, `dense_messages`, `in_flight`) use the
//! protocol library, `rmcp`, for more than the types of requests and responses.

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, pending};
use rmcp::{
    RoleClient,
    model::{ProtocolVersion, SubscriptionFilter},
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    call::McpCaller,
    client::McpClient,
    dense_messages::bounded_lines,
    flood::{MAX_MESSAGES, WINDOW},
    handler::{ServerHandler, SessionState},
    http_client::{McpHttpClient, is_unreachable},
    options::McpTransport,
    process::ServerProcess,
    tokens::Tokens,
};
use agui_base::{text::error_chain, upstream};

const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two pings of a server over HTTP without calls. The end of a process is noticed without them.
const IDLE_PING_INTERVAL: Duration = Duration::from_secs(30);
/// The longest time for which a list of tools is believed, whatever its server says (`ttlMs`).
const MAX_LIST_AGE: Duration = Duration::from_secs(3600);
/// The time for a server over HTTP to say which revisions it knows. The library lets a process take 10 s.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(15);
const LISTEN_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before changes are listened to again.
const LISTEN_PAUSE: Duration = Duration::from_secs(5);
/// The time to wait for the last lines of stderr after the end of stdout.
const STDERR_DELAY: Duration = Duration::from_millis(20);

/// An open session. Dropping it closes the session, and kills the server's process.
pub(super) struct McpSession {
    pub(super) client: McpClient,
    ended: BoxFuture<'static, ()>,
    process: Option<ServerProcess>,
}

/// The first request of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Opening {
    /// `server/discover`, and `initialize` if the server answers that with an error.
    Discover,
    /// `initialize`, as until 2025-11-25.
    Initialize,
}

impl Opening {
    fn other(self) -> Self {
        if self == Self::Discover { Self::Initialize } else { Self::Discover }
    }

    fn lifecycle(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        match self {
            Self::Discover => {
                ClientLifecycleMode::Auto { preferred_versions, legacy_version: None }
            }
            Self::Initialize => ClientLifecycleMode::Initialize,
        }
    }
}

/// The reason why a session cannot be opened.
struct OpenError {
    reason: String,
    is_final: bool,
    /// True if the server listed its revisions after the library had given up: `npx` and `uvx`
    /// download programs first.
    is_late: bool,
}

impl OpenError {
    fn of(error: &ClientInitializeError) -> Self {
        let error = match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
            error => error,
        };
        let is_final = matches!(error, ClientInitializeError::TransportError { error, .. } if is_unreachable(&*error.error));
        let is_late = matches!(error, ClientInitializeError::ConflictInitResponseId(..));
        let reason = match error {
            // The error's own text names types of the library.
            ClientInitializeError::TransportError { error, .. } => error_chain(&*error.error),
            error => error_chain(error),
        };
        let hint = match error {
            _ if is_final => "nothing listens there: start the server, or correct `url`",
            _ if error.is_authorization_required() => {
                "it wants credentials: set `oauth` or `headers`"
            }
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
                "update the server, or this one"
            }
            ClientInitializeError::JsonRpcError(_)
                if reason.contains("HTTP 404") || reason.contains("HTTP 405") =>
            {
                "correct the path of `url`, which is often `/mcp`"
            }
            _ => return Self { reason, is_final, is_late },
        };
        Self { reason: format!("{reason}: {hint}"), is_final, is_late }
    }
}

impl McpSession {
    /// Connects, without a time limit. If the first opening fails, the other one is tried: some
    /// servers end or are silent after a request that they do not know.
    ///
    /// # Errors
    /// The reason of the opening that knows all revisions.
    pub(super) async fn open(
        caller: &McpCaller,
        transport: &McpTransport,
        first: Opening,
    ) -> Result<Self, String> {
        let mut result = Self::open_by(first, caller, transport).await;
        if result.as_ref().is_err_and(|error| error.is_late) {
            result = Self::open_by(Opening::Discover, caller, transport).await;
        }
        let error = match result {
            Err(error) if !error.is_final => error,
            result => return result.map_err(|error| error.reason),
        };
        Self::open_by(first.other(), caller, transport).await.map_err(|other| match first {
            Opening::Discover => error.reason,
            Opening::Initialize => other.reason,
        })
    }

    async fn open_by(
        opening: Opening,
        caller: &McpCaller,
        transport: &McpTransport,
    ) -> Result<Self, OpenError> {
        let McpCaller { server, options, .. } = caller;
        let (allows_questions, shows_apps) = (options.elicitation, options.apps);
        let handler = ServerHandler {
            server: server.clone(),
            allows_questions,
            shows_apps,
            ..Default::default()
        };
        let state = handler.state.clone();
        let failed = |reason, is_final| OpenError { reason, is_final, is_late: false };
        let (service, process, tokens) = match transport {
            McpTransport::Command { program, arguments, environment } => {
                let (mut process, stdout, stdin) =
                    ServerProcess::spawn(server, program, arguments, environment).map_err(
                        |error| {
                            let hint = "install it, or correct `command`";
                            failed(format!("{program} cannot be started: {error}: {hint}"), true)
                        },
                    )?;
                let stream = (bounded_lines(server.clone(), stdout), stdin);
                match handler.serve_with_lifecycle(stream, opening.lifecycle()).await {
                    Ok(service) => (service, Some(process), None),
                    Err(error) => {
                        let stderr = process.stderr_note();
                        process.end().await;
                        let error = OpenError::of(&error);
                        let reason = format!(
                            "{program} does not speak MCP, or has ended: {}{stderr}",
                            error.reason
                        );
                        return Err(OpenError { reason, ..error });
                    }
                }
            }
            McpTransport::Http { url, headers, tokens } => {
                let http = upstream::direct_client(&upstream::ClientOptions::default()).map_err(
                    |error| failed(format!("the HTTP client cannot be created: {error}"), true),
                )?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers =
                    headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let client = McpHttpClient { http, tokens: tokens.clone() };
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let limit =
                    if opening == Opening::Discover { DISCOVER_TIMEOUT } else { Duration::MAX };
                let service =
                    timeout(limit, handler.serve_with_lifecycle(transport, opening.lifecycle()))
                        .await;
                let silent =
                    || format!("it does not say in {} s which revisions it knows", limit.as_secs());
                let service = service.map_err(|_| failed(silent(), false))?;
                (service.map_err(|error| OpenError::of(&error))?, None, tokens.clone())
            }
        };
        Ok(Self::of(service, state, tokens, process))
    }

    fn of(
        service: RunningService<RoleClient, ServerHandler>,
        state: Arc<SessionState>,
        tokens: Option<Tokens>,
        process: Option<ServerProcess>,
    ) -> Self {
        let client = McpClient { peer: service.peer().clone(), state, tokens };
        let listener = client.clone();
        let ended = Box::pin(async move {
            tokio::select! {
                _ = service.waiting() => {}
                () = listen(&listener), if !listener.has_initialize() => {}
            }
        });
        Self { client, ended, process }
    }

    /// Waits until the tools have to be listed again: they have changed, or the list has expired.
    ///
    /// # Errors
    /// The reason why the session is lost.
    pub(super) async fn next_list(&mut self) -> Result<(), String> {
        let state = &self.client.state;
        let mut idle_end = self.idle_time().map(|idle| Instant::now() + idle);
        loop {
            let ping_timeout = tokio::select! {
                () = &mut self.ended => {
                    sleep(STDERR_DELAY).await;
                    let stderr = self.process.as_ref().map(ServerProcess::stderr_note).unwrap_or_default();
                    return Err(format!("it has ended, or closed the session{stderr}"));
                }
                () = state.disconnected.notified() => return Err("the session broke".to_owned()),
                () = state.gauge.flooded.notified() => {
                    let seconds = WINDOW.as_secs();
                    return Err(format!("it sent more than {MAX_MESSAGES} messages in {seconds} s"));
                }
                () = state.tools_changed.notified() => return Ok(()),
                () = state.timed_out.notified() => PING_TIMEOUT,
                () = sleep_until(idle_end.unwrap_or_else(Instant::now)), if idle_end.is_some() => {
                    idle_end = Some(Instant::now() + IDLE_PING_INTERVAL);
                    // A server that is busy with a call may answer no ping.
                    if state.calls.are_any_open().await {
                        continue;
                    }
                    if !state.list_age.lock().is_zero() {
                        return Ok(());
                    }
                    IDLE_PING_INTERVAL
                }
            };
            if !self.client.responds(ping_timeout).await {
                return Err("it does not answer a ping".to_owned());
            }
        }
    }

    /// Returns the time without calls after which the list of tools has expired, or a server over
    /// HTTP is pinged.
    fn idle_time(&self) -> Option<Duration> {
        let list_age = *self.client.state.list_age.lock();
        match (self.process.is_some(), list_age.is_zero()) {
            (true, true) => None,
            (false, true) => Some(IDLE_PING_INTERVAL),
            (_, false) => Some(list_age.clamp(IDLE_PING_INTERVAL, MAX_LIST_AGE)),
        }
    }

    pub(super) async fn close(&mut self) {
        // This closes stdin.
        self.ended = Box::pin(pending());
        if let Some(process) = &mut self.process {
            process.end().await;
        }
    }
}

/// Listens to changes of the list of tools, forever. A stream that ends can have missed some.
async fn listen(client: &McpClient) {
    let announces = |tools: &rmcp::model::ToolsCapability| tools.list_changed == Some(true);
    let info = client.peer.peer_info();
    if !info.is_some_and(|info| info.capabilities.tools.as_ref().is_some_and(announces)) {
        return pending().await;
    }
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = Some(true);
    loop {
        if let Ok(Ok(mut changes)) =
            timeout(LISTEN_TIMEOUT, client.peer.listen(filter.clone())).await
        {
            while let Ok(Some(_)) = changes.next().await {
                client.state.gauge.count();
                client.state.tools_changed.notify_one();
            }
            client.state.tools_changed.notify_one();
        }
        sleep(LISTEN_PAUSE).await;
    }
}

#[cfg(test)]
impl McpSession {
    /// Opens a session with a server in this process.
    pub(super) async fn over(stream: tokio::io::DuplexStream) -> Self {
        let handler = ServerHandler::default();
        let state = handler.state.clone();
        let service = handler
            .serve_with_lifecycle(tokio::io::split(stream), Opening::Discover.lifecycle())
            .await;
        Self::of(service.unwrap(), state, None, None)
    }
}
