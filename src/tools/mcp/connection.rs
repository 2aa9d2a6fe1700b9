//! A connection to an MCP server: a process, or a server over HTTP. Only the files of this module that a connection
//! consists of (`connection`, `client`, `handler`, `http_client`, `dense_messages`, `in_flight`) use the protocol library,
//! `rmcp`, for more than the types of requests and responses.

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt as _, pending};
use rmcp::{
    ServiceExt as _,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use tokio::time::sleep;

use super::{
    client::McpClient,
    dense_messages::bounded_lines,
    flood::{MAX_MESSAGES, WINDOW},
    handler::ServerHandler,
    http_client::McpHttpClient,
    oauth::AccessTokens,
    options::{McpServerOptions, McpTransport},
    process::ServerProcess,
};
use crate::{base::text::error_chain, upstream};

const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two pings of a server over HTTP without calls. The end of a process is noticed without them.
const IDLE_PING_INTERVAL: Duration = Duration::from_secs(30);
/// The time to wait for the last lines of stderr after the end of stdout.
const STDERR_DELAY: Duration = Duration::from_millis(20);

/// An open connection. Dropping it closes the connection, and kills the process of a server that was started for it.
pub(super) struct McpConnection {
    pub(super) client: McpClient,
    ended: BoxFuture<'static, ()>,
    process: Option<ServerProcess>,
}

pub(super) enum ConnectionEvent {
    ToolsChanged,
    Lost(String),
}

impl McpConnection {
    /// Connects, without a time limit.
    pub(super) async fn open(
        server: &Arc<str>,
        options: &McpServerOptions,
        transport: &McpTransport,
    ) -> Result<Self, String> {
        let (allows_questions, shows_apps) = (options.elicitation, options.apps);
        let handler = ServerHandler { server: server.clone(), allows_questions, shows_apps, ..Default::default() };
        let state = handler.state.clone();
        let (service, process, tokens) = match transport {
            McpTransport::Command { program, arguments, environment } => {
                let (mut process, stdout, stdin) = ServerProcess::spawn(server, program, arguments, environment)
                    .map_err(|error| format!("{program} cannot be started: {error}"))?;
                match handler.serve((bounded_lines(server.clone(), stdout), stdin)).await {
                    Ok(service) => (service, Some(process), None),
                    Err(error) => {
                        let stderr = stderr_note(Some(&process));
                        process.end().await;
                        let cause = error_chain(&error);
                        return Err(format!("{program} does not speak MCP, or has ended: {cause}{stderr}"));
                    }
                }
            }
            McpTransport::Http { url, headers, oauth } => {
                let http = upstream::direct_client(&upstream::ClientOptions::default())
                    .map_err(|error| format!("the HTTP client cannot be created: {error}"))?;
                let tokens = oauth.as_ref().map(|(oauth, secret)| {
                    Arc::new(AccessTokens::new(oauth.clone(), secret.clone(), url, http.clone()))
                });
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let client = McpHttpClient { http, tokens: tokens.clone() };
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = handler.serve(transport).await.map_err(|error| error_chain(&error))?;
                (service, None, tokens)
            }
        };
        let client = McpClient { peer: service.peer().clone(), state, tokens };
        let ended = Box::pin(service.waiting().map(drop));
        Ok(Self { client, ended, process })
    }

    pub(super) async fn next_event(&mut self) -> ConnectionEvent {
        let state = &self.client.state;
        loop {
            let ping_timeout = tokio::select! {
                () = &mut self.ended => {
                    sleep(STDERR_DELAY).await;
                    let stderr = stderr_note(self.process.as_ref());
                    return ConnectionEvent::Lost(format!("it has ended, or closed the connection{stderr}"));
                }
                () = state.disconnected.notified() => return ConnectionEvent::Lost("the connection broke".to_owned()),
                () = state.gauge.flooded.notified() => {
                    let seconds = WINDOW.as_secs();
                    return ConnectionEvent::Lost(format!("it sent more than {MAX_MESSAGES} messages in {seconds} s"));
                }
                () = state.tools_changed.notified() => return ConnectionEvent::ToolsChanged,
                () = state.timed_out.notified() => PING_TIMEOUT,
                () = sleep(IDLE_PING_INTERVAL), if self.process.is_none() => {
                    // A server can be busy with a call, and answer no ping meanwhile.
                    if state.calls.are_any_open().await {
                        continue;
                    }
                    IDLE_PING_INTERVAL
                }
            };
            if !self.client.responds_to_ping(ping_timeout).await {
                return ConnectionEvent::Lost("it does not answer a ping".to_owned());
            }
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

fn stderr_note(process: Option<&ServerProcess>) -> String {
    match process.map(ServerProcess::stderr_tail) {
        Some(tail) if !tail.is_empty() => format!("; its last lines on stderr: {tail}"),
        _ => String::new(),
    }
}
