//! A session with an MCP server: a process, or a server over HTTP. Only the files that implement a
//! session (`session`, `client`, `handler`, `http_client`, `dense_messages`, `in_flight`) use the
//! protocol library, `rmcp`, for more than the types of requests and responses.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared, pending},
};
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
    options::{McpRevision, McpTransport},
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
/// The requests that a server over HTTP works on at once. The library's limit of 16 would let hanging calls hold up others.
const MAX_CONCURRENT_REQUESTS: usize = 1000;
const LISTEN_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before changes are listened to again.
const LISTEN_PAUSE: Duration = Duration::from_secs(5);
/// The time to wait for the last lines of stderr after the end of stdout.
const STDERR_DELAY: Duration = Duration::from_millis(20);

/// The reason why a URL with the transport HTTP+SSE cannot be used.
const HTTP_SSE: &str = "it has the transport HTTP+SSE of 2024-11-05 there, which is not supported: let it offer \
                        streamable HTTP, and set `url` to its address, which often ends with `/mcp`";

/// An open session. Dropping it closes the session, and kills the server's process.
pub(super) struct McpSession {
    pub(super) client: McpClient,
    ended: Shared<BoxFuture<'static, ()>>,
    process: Option<ServerProcess>,
    pub(super) is_http: bool,
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

/// The reason why another session is needed.
pub(super) enum SessionLoss {
    /// The transport has ended, and with it all calls.
    Ended(String),
    /// A call has found that the server takes no messages in the session. Earlier calls can still get their responses.
    Away,
    /// The server does not answer a ping. It may still work on calls.
    Silent,
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
        if caller.options.revision.is_some() {
            let opened = Self::open_by(Opening::Initialize, caller, transport).await;
            return opened.map_err(|error| error.reason);
        }
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
            revision: options.revision.map_or_else(Default::default, McpRevision::version),
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
                // The library would end the other calls of the session.
                config.reinit_on_expired_session = false;
                config.max_concurrent_requests = MAX_CONCURRENT_REQUESTS;
                let client = McpHttpClient { http, tokens: tokens.clone() };
                let (probing, own_headers) = (client.clone(), config.custom_headers.clone());
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let limit =
                    if opening == Opening::Discover { DISCOVER_TIMEOUT } else { Duration::MAX };
                let service =
                    timeout(limit, handler.serve_with_lifecycle(transport, opening.lifecycle()))
                        .await;
                let silent =
                    || format!("it does not say in {} s which revisions it knows", limit.as_secs());
                let service = match service.map_err(|_| failed(silent(), false))? {
                    Ok(service) => service,
                    Err(error) => {
                        let error = OpenError::of(&error);
                        let is_http_sse = error.reason.contains("HTTP 4")
                            && probing.has_http_sse_transport(url, &own_headers).await;
                        return Err(if is_http_sse {
                            failed(HTTP_SSE.into(), true)
                        } else {
                            error
                        });
                    }
                };
                (service, None, tokens.clone())
            }
        };
        let is_http = matches!(transport, McpTransport::Http { .. });
        Ok(Self { process, is_http, ..Self::of(service, state, tokens) })
    }

    fn of(
        service: RunningService<RoleClient, ServerHandler>,
        state: Arc<SessionState>,
        tokens: Option<Tokens>,
    ) -> Self {
        let client = McpClient { peer: service.peer().clone(), state, tokens };
        let listener = client.clone();
        let ended = async move {
            tokio::select! {
                _ = service.waiting() => {}
                () = listen(&listener), if !listener.has_initialize() => {}
            }
        };
        Self { client, ended: ended.boxed().shared(), process: None, is_http: false }
    }

    /// Waits until the tools have to be listed again: they have changed, or the list has expired.
    ///
    /// # Errors
    /// The reason why the session is lost.
    pub(super) async fn next_list(&mut self) -> Result<(), SessionLoss> {
        let state = &self.client.state;
        let mut idle_end = self.idle_time().map(|idle| Instant::now() + idle);
        loop {
            let ping_timeout = tokio::select! {
                () = self.ended.clone() => {
                    sleep(STDERR_DELAY).await;
                    let stderr = self.process.as_ref().map(ServerProcess::stderr_note).unwrap_or_default();
                    let reason = format!("it has ended, or closed the session{stderr}");
                    return Err(SessionLoss::Ended(reason));
                }
                () = state.lost.notified() => return Err(SessionLoss::Away),
                () = state.gauge.flooded.notified() => {
                    // The session ends at once, also for its calls.
                    state.gauge.flooded.notify_one();
                    let seconds = WINDOW.as_secs();
                    let reason = format!("it sent more than {MAX_MESSAGES} messages in {seconds} s");
                    return Err(SessionLoss::Ended(reason));
                }
                () = state.tools_changed.notified() => return Ok(()),
                () = state.doubtful.notified() => PING_TIMEOUT,
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
                return Err(SessionLoss::Silent);
            }
        }
    }

    /// Returns the time without calls after which the list of tools has expired, or a server over
    /// HTTP is pinged.
    fn idle_time(&self) -> Option<Duration> {
        let list_age = *self.client.state.list_age.lock();
        match (self.is_http, list_age.is_zero()) {
            (false, true) => None,
            (true, true) => Some(IDLE_PING_INTERVAL),
            (_, false) => Some(list_age.clamp(IDLE_PING_INTERVAL, MAX_LIST_AGE)),
        }
    }

    /// Waits until no call is open, or the session has ended.
    pub(super) async fn calls_ended(&self) {
        tokio::select! {
            () = self.client.state.calls.all_ended() => {}
            () = self.ended.clone() => {}
            () = self.client.state.gauge.flooded.notified() => {}
        }
    }

    /// Waits until no call is open. Returns whether the server then answers a ping.
    pub(super) async fn responds_after_calls(&self) -> bool {
        self.calls_ended().await;
        self.client.responds(PING_TIMEOUT).await
    }

    pub(super) async fn close(&mut self) {
        // This closes stdin.
        self.ended = pending().boxed().shared();
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
        Self::of(service.unwrap(), state, None)
    }
}
