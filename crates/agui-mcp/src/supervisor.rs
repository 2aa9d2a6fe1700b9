//! Keeps an MCP server connected: connects, lists its tools, follows its notifications, and connects again.

use std::{future::pending, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    call::McpCaller,
    client::{McpClient, RequestError},
    current_session::SessionStatus,
    features,
    options::McpTransport,
    session::{McpSession, Opening, SessionLoss},
    tool::McpTool,
};
use agui_tools::host::digest;

const MAX_TOOLS: usize = 256;
/// The length of the digest that tells lists of tools apart, before base64.
const LIST_DIGEST_BYTES: usize = 24;
/// `npx` and `uvx` download programs before they start.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before the first restart; it doubles with each restart up to `MAX_RESTART_PAUSE`.
const FIRST_RESTART_PAUSE: Duration = Duration::from_secs(1);
const MAX_RESTART_PAUSE: Duration = Duration::from_secs(60);
/// The shortest time between two attempts to connect. Calls that wait for the server make a pause as short as this.
const MIN_OPEN_INTERVAL: Duration = Duration::from_secs(1);
/// After this uptime the restart back-off is reset.
const STABLE_UPTIME: Duration = Duration::from_secs(60);
/// The shortest time between two lists of tools, for servers that announce changes in a loop.
const MIN_LIST_INTERVAL: Duration = Duration::from_millis(200);
/// The reason why a stopped server is not available.
pub(super) const STOPPED: &str = "it is stopped";

enum ListChange {
    Same,
    Changed,
}

#[derive(Default)]
pub(super) struct ToolList {
    /// Set when the first attempt to connect is over, with or without success.
    pub(super) is_settled: bool,
    /// Set when the server has listed its tools once.
    pub(super) is_known: bool,
    pub(super) tools: Vec<Arc<McpTool>>,
    /// Digest of the tools' descriptions.
    digest: String,
    /// Set if the server has said that it has resources.
    pub(super) has_resources: bool,
    /// Set if the server has said that it has prompts.
    pub(super) has_prompts: bool,
}

impl ToolList {
    /// An unchanged tool keeps its `Arc`, and with it the schema that toolboxes have compiled.
    fn replace(&mut self, mut tools: Vec<Arc<McpTool>>) -> ListChange {
        for tool in &mut tools {
            let is_same = |old: &&Arc<McpTool>| {
                (&old.name, &old.spec, old.effects, &old.ui)
                    == (&tool.name, &tool.spec, tool.effects, &tool.ui)
            };
            if let Some(old) = self.tools.iter().find(is_same) {
                *tool = old.clone();
            }
        }
        let is_unchanged = self.tools.iter().map(Arc::as_ptr).eq(tools.iter().map(Arc::as_ptr));
        self.tools = tools;
        if is_unchanged { ListChange::Same } else { ListChange::Changed }
    }
}

pub(super) struct Supervisor {
    pub(super) caller: Arc<McpCaller>,
    pub(super) transport: McpTransport,
    pub(super) tools: watch::Sender<ToolList>,
}

impl Supervisor {
    pub(super) async fn run(self: Arc<Self>, stop: oneshot::Receiver<()>) {
        let mut session = None;
        tokio::select! {
            () = self.keep_connected(&mut session) => {}
            _ = stop => {}
        }
        self.caller.session.set(SessionStatus::Closed(STOPPED.to_owned()));
        if let Some(mut session) = session {
            session.close().await;
        }
    }

    /// Opens a session whenever there is none. Never completes; the caller has to close `session`.
    async fn keep_connected(&self, session: &mut Option<McpSession>) {
        let server = &*self.caller.server;
        let (mut pause, mut opening) = (None, Opening::Discover);
        let (mut is_awaited, mut logged) = (false, String::new());
        // Sessions over HTTP that were replaced, until their calls have ended.
        let mut replaced = JoinSet::new();
        loop {
            let begin = Instant::now();
            let (reason, uptime) = match self.open(opening).await {
                Err(reason) if self.caller.wants_login() => {
                    tracing::info!(server, "the MCP server wants a login");
                    self.caller.session.set(SessionStatus::Closed(reason));
                    self.settle();
                    // A login opens another session.
                    return pending().await;
                }
                Err(reason) => (reason, Duration::ZERO),
                Ok(opened) => {
                    // Next time an older server is not asked for its revisions.
                    opening = if opened.client.has_initialize() {
                        Opening::Initialize
                    } else {
                        Opening::Discover
                    };
                    (is_awaited, logged) = (false, String::new());
                    let (since, opened) = (Instant::now(), session.insert(opened));
                    let reason = self.follow(opened).await;
                    self.caller.session.set(SessionStatus::Away(self.redacted(reason.clone())));
                    if !opened.is_http {
                        opened.close().await;
                    }
                    if let Some(lost) = session.take().filter(|lost| lost.is_http) {
                        replaced.spawn(async move { lost.calls_ended().await });
                    }
                    (reason, since.elapsed())
                }
            };
            let (reason, next) = (self.redacted(reason), next_pause(pause, uptime));
            if is_awaited && logged == reason {
                tracing::debug!(server, why = reason, "the MCP server is still not available");
            } else {
                tracing::warn!(server, why = reason, again_in = ?next, "the MCP server is not available");
            }
            self.caller.session.set(SessionStatus::Away(reason.clone()));
            logged = reason;
            self.settle();
            let awaited = async {
                self.caller.session.awaited().await;
                sleep_until(begin + MIN_OPEN_INTERVAL).await;
            };
            tokio::select! {
                () = sleep(next) => (pause, is_awaited) = (Some(next), false),
                () = awaited => {
                    (pause, is_awaited) = (pause.filter(|_| uptime < STABLE_UPTIME), true);
                }
            }
            while replaced.try_join_next().is_some() {}
        }
    }

    fn redacted(&self, reason: String) -> String {
        let tokens = match &self.transport {
            McpTransport::Http { tokens, .. } => tokens.as_ref(),
            McpTransport::Command { .. } => None,
        };
        self.caller.redacted(reason, tokens)
    }

    async fn open(&self, first: Opening) -> Result<McpSession, String> {
        let opening = async {
            let session = McpSession::open(&self.caller, &self.transport, first).await?;
            self.list_tools(&session.client).await.map_err(|error| match error {
                RequestError::Refused { reason, .. } => {
                    format!("it does not list its tools: {reason}")
                }
                error => {
                    format!("the session broke while it listed its tools: {}", error.reason())
                }
            })?;
            Ok(session)
        };
        let late = |_| Err(format!("it does not answer within {} s", CONNECT_TIMEOUT.as_secs()));
        timeout(CONNECT_TIMEOUT, opening).await.unwrap_or_else(late)
    }

    /// Lists the tools when they change, until another session is needed. Returns the reason.
    pub(super) async fn follow(&self, session: &mut McpSession) -> String {
        let server = &*self.caller.server;
        let client = session.client.clone();
        self.caller.session.set(SessionStatus::Open(client.clone()));
        self.settle();
        let (revision, tools) = (client.revision(), self.tools.borrow().tools.len());
        tracing::info!(server, %revision, tools, "connected to the MCP server");
        let mut failure = None;
        loop {
            match session.next_list().await {
                Ok(()) => {}
                Err(SessionLoss::Ended(reason)) => return reason,
                Err(SessionLoss::Away) => {
                    let by_call = self.caller.session.client().err();
                    return by_call.unwrap_or_else(|| "it has forgotten the session".to_owned());
                }
                Err(SessionLoss::Silent) => {
                    let reason = "it does not answer a ping".to_owned();
                    // A process that is replaced ends, and it may only be busy.
                    if !session.is_http && client.state.calls.are_any_open().await {
                        self.caller.session.set(SessionStatus::Away(reason.clone()));
                        if session.responds_after_calls().await {
                            self.caller.session.set(SessionStatus::Open(client.clone()));
                            continue;
                        }
                    }
                    return reason;
                }
            }
            match timeout(LIST_TIMEOUT, self.list_tools(&client)).await {
                Ok(Ok(ListChange::Same)) => failure = None,
                Ok(Ok(ListChange::Changed)) => {
                    let tools = self.tools.borrow().tools.len();
                    tracing::info!(server, tools, "the tools of the MCP server have changed");
                }
                Ok(Err(error)) => {
                    let (is_away, is_unknown) = (
                        matches!(error, RequestError::Away(_)),
                        matches!(error, RequestError::Unknown(_)),
                    );
                    let reason = self.redacted(error.reason());
                    if is_away {
                        self.caller.session.lose(&client, &reason);
                    } else if is_unknown {
                        client.state.doubtful.notify_one();
                    }
                    if failure.as_ref() != Some(&reason) {
                        tracing::warn!(
                            server,
                            why = reason,
                            "the MCP server does not list its tools again"
                        );
                    }
                    failure = Some(reason);
                }
                Err(_) => client.state.doubtful.notify_one(),
            }
            sleep(MIN_LIST_INTERVAL).await;
        }
    }

    /// Lists the tools. The warnings about a list are logged once, also if the same list is read
    /// again.
    async fn list_tools(&self, client: &McpClient) -> Result<ListChange, RequestError> {
        let descriptions = client.list_tools(MAX_TOOLS).await?;
        let digest = digest(
            "",
            &serde_json::to_string(&descriptions).unwrap_or_default(),
            LIST_DIGEST_BYTES,
        );
        let is_new = !self.tools.borrow().is_known || self.tools.borrow().digest != digest;
        let tools = if is_new { Some(self.described(&descriptions)) } else { None };
        let mut change = ListChange::Same;
        self.tools.send_modify(|list| {
            if let Some(tools) = tools {
                change = list.replace(tools);
            }
            (list.is_known, list.digest) = (true, digest);
            let info = client.peer.peer_info();
            list.has_resources =
                info.as_ref().is_some_and(|info| info.capabilities.resources.is_some());
            list.has_prompts =
                info.as_ref().is_some_and(|info| info.capabilities.prompts.is_some());
        });
        Ok(change)
    }

    /// Returns the tools that can be used.
    fn described(&self, descriptions: &[Value]) -> Vec<Arc<McpTool>> {
        let (server, options) = (&*self.caller.server, &self.caller.options);
        if descriptions.len() == MAX_TOOLS {
            tracing::warn!(
                server,
                "the MCP server has {MAX_TOOLS} tools or more; only the first {MAX_TOOLS} are used"
            );
        }
        let is_used = |name: &str| {
            options.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == name))
        };
        let used = descriptions.iter().filter(|description| is_used(tool_name(description)));
        let tools = used.filter_map(|description| {
            let left_out = |why: &String| {
                tracing::warn!(
                    server,
                    tool = tool_name(description),
                    why,
                    "a tool of the MCP server is left out"
                );
            };
            McpTool::new(description, &self.caller).map(Arc::new).inspect_err(left_out).ok()
        });
        let tools = tools.collect();
        let is_of_tool = |name: &&String| ![features::READ, features::GET].contains(&name.as_str());
        let configured =
            options.tools.iter().flatten().chain(options.approval_of.keys().filter(is_of_tool));
        for name in configured
            .filter(|name| !descriptions.iter().any(|description| tool_name(description) == *name))
        {
            tracing::warn!(server, tool = name, "the MCP server has no tool of this name");
        }
        tools
    }

    fn settle(&self) {
        self.tools.send_modify(|list| list.is_settled = true);
    }
}

fn tool_name(description: &Value) -> &str {
    description.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the pause before a restart. `last` is the pause before the previous one.
fn next_pause(last: Option<Duration>, uptime: Duration) -> Duration {
    match last.filter(|_| uptime < STABLE_UPTIME) {
        Some(last) => (last * 2).min(MAX_RESTART_PAUSE),
        None => FIRST_RESTART_PAUSE,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

    use super::*;
    use crate::McpServerOptions;
    use agui_tools::{host::Secrets, options::HeaderSource};

    /// A server of 2026-07-28 that notes the seconds at which it lists its tools, the second of which cannot be used.
    async fn serve(stream: DuplexStream, cache: Value, lists: Arc<Mutex<Vec<u64>>>) {
        let (begin, (input, mut output)) = (Instant::now(), tokio::io::split(stream));
        let mut lines = BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            let mut result = match request["method"].as_str().unwrap_or_default() {
                "server/discover" => {
                    json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
                }
                "tools/list" => {
                    lists.lock().unwrap().push(begin.elapsed().as_secs());
                    let object = json!({ "type": "object" });
                    json!({ "tools": [{ "name": "a", "inputSchema": object }, { "name": "b", "inputSchema": "none" }] })
                }
                _ => continue,
            };
            let members = result.as_object_mut().unwrap();
            members.extend(json!({ "resultType": "complete" }).as_object().unwrap().clone());
            members.extend(cache.as_object().unwrap().clone());
            let response = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
            output.write_all(format!("{response}\n").as_bytes()).await.unwrap();
        }
    }

    /// Returns the seconds at which a server lists its tools, and how often a tool is left out with a warning.
    async fn lists_within(time: Duration, cache: Value) -> (Vec<u64>, usize) {
        let (ours, theirs) = tokio::io::duplex(4096);
        let lists = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(serve(theirs, cache, lists.clone()));
        let options = McpServerOptions::command(["x"]);
        let transport = options.transport(None).unwrap();
        let caller =
            Arc::new(McpCaller::new("test".into(), options, Secrets::default(), None).unwrap());
        let supervisor = Supervisor { caller, transport, tools: watch::Sender::default() };
        let mut session = McpSession::over(ours).await;
        session.is_http = true;
        let log = Log::default();
        let written = log.clone();
        let log_writer = tracing_subscriber::fmt().with_writer(move || written.clone()).finish();
        let _logged = tracing::subscriber::set_default(log_writer);
        supervisor.list_tools(&session.client).await.unwrap();
        let ended = timeout(time, supervisor.follow(&mut session)).await;
        assert!(ended.is_err(), "{ended:?}");
        assert_eq!(supervisor.tools.borrow().tools.len(), 1);
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let lists = lists.lock().unwrap().clone();
        (lists, log.matches("a tool of the MCP server is left out").count())
    }

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_read_again_after_its_time_and_its_warnings_are_logged_once() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for scope in ["public", "private"] {
            let cache = json!({ "ttlMs": 100_000, "cacheScope": scope });
            assert_eq!(
                lists_within(minutes(6), cache).await,
                (vec![0, 100, 200, 300], 1),
                "{scope}"
            );
        }
        // At most twice a minute, and at least once an hour.
        let often = json!({ "ttlMs": 1000, "cacheScope": "private" });
        assert_eq!(lists_within(minutes(2), often).await, (vec![0, 30, 60, 90], 1));
        let seldom = json!({ "ttlMs": 10_000_000_000_u64, "cacheScope": "public" });
        assert_eq!(lists_within(minutes(90), seldom).await, (vec![0, 3600], 1));
        // Without a time, a list is the ping of the server.
        let without = json!({ "ttlMs": 0, "cacheScope": "private" });
        assert_eq!(lists_within(minutes(2), without).await, (vec![0, 30, 60, 90], 1));
    }

    #[tokio::test]
    async fn a_server_that_repeats_a_secret_header_shows_it_in_no_log() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut options =
            McpServerOptions::url(format!("http://{}/mcp", listener.local_addr().unwrap()));
        let refuse = || async { (http::StatusCode::FORBIDDEN, "no entry with plainwordsfortests") };
        tokio::spawn(
            async move { axum::serve(listener, axum::Router::new().fallback(refuse)).await },
        );
        let header = HeaderSource::Text("Bearer plainwordsfortests".to_owned());
        options.headers.insert("Authorization".to_owned(), header);
        let transport = options.transport(None).unwrap();
        let McpTransport::Http { headers, .. } = &transport else { panic!() };
        let secrets = Secrets::from_headers(headers);
        let caller = Arc::new(McpCaller::new("test".into(), options, secrets, None).unwrap());
        let supervisor = Supervisor { caller, transport, tools: watch::Sender::default() };
        let log = Log::default();
        let written = log.clone();
        let _logged = tracing::subscriber::set_default(
            tracing_subscriber::fmt().with_writer(move || written.clone()).finish(),
        );
        let (mut settled, mut session) = (supervisor.tools.subscribe(), None);
        tokio::select! {
            () = supervisor.keep_connected(&mut session) => {}
            _ = settled.changed() => {}
        }
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(log.contains("no entry with [redacted]") && !log.contains("plainwords"), "{log}");
    }

    #[test]
    fn restart_pauses_double_up_to_a_minute_and_a_stable_uptime_resets_them() {
        let next = |last: &Option<Duration>| Some(Some(next_pause(*last, Duration::from_secs(1))));
        let pauses = std::iter::successors(Some(None), next).skip(1).flatten();
        assert_eq!(
            pauses.map(|pause| pause.as_secs()).take(8).collect::<Vec<_>>(),
            [1, 2, 4, 8, 16, 32, 60, 60]
        );
        assert_eq!(next_pause(Some(MAX_RESTART_PAUSE), STABLE_UPTIME), FIRST_RESTART_PAUSE);
    }
}
