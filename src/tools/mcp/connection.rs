//! A connection to an MCP server: a process, or a server over HTTP. Only the files of this module that a connection
//! consists of (`connection`, `client`, `handler`, `http_client`, `dense_messages`, `in_flight`) use the protocol library,
//! `rmcp`, for more than the types of requests and answers.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use rmcp::{
    RoleClient, ServiceExt as _,
    service::RunningService,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::{
    client::McpClient,
    dense_messages::bounded_lines,
    flood::{FloodGauge, MAX_MESSAGES, WINDOW},
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
    tools_changed: Arc<Notify>,
    gauge: Arc<FloodGauge>,
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
        let handler = ServerHandler::new(server.clone(), options);
        let (tools_changed, calls) = (handler.tools_changed.clone(), handler.calls.clone());
        let gauge = handler.gauge.clone();
        let (service, process, tokens) = match transport {
            McpTransport::Command { program, arguments, environment } => {
                let (process, stdout, stdin) = ServerProcess::spawn(server, program, arguments, environment)
                    .map_err(|error| format!("{program} cannot be started: {error}"))?;
                match handler.serve((bounded_lines(stdout), stdin)).await {
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
                let client = McpHttpClient::new(http, tokens.clone());
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = handler.serve(transport).await.map_err(|error| error_chain(&error))?;
                (service, None, tokens)
            }
        };
        let client = McpClient::new(service.peer().clone(), calls, tokens);
        Ok(Self { client, tools_changed, gauge, ended: Box::pin(run(service)), process })
    }

    pub(super) async fn next_event(&mut self) -> ConnectionEvent {
        loop {
            tokio::select! {
                () = &mut self.ended => {
                    sleep(STDERR_DELAY).await;
                    let stderr = stderr_note(self.process.as_ref());
                    return ConnectionEvent::Lost(format!("it has ended, or closed the connection{stderr}"));
                }
                () = self.client.health.disconnected.notified() => {
                    return ConnectionEvent::Lost("the connection broke".to_owned());
                }
                () = self.client.health.timed_out.notified() => {
                    if !matches!(timeout(PING_TIMEOUT, self.client.ping()).await, Ok(Ok(()))) {
                        return ConnectionEvent::Lost("it does not answer a ping".to_owned());
                    }
                }
                () = self.gauge.flooded() => {
                    let seconds = WINDOW.as_secs();
                    return ConnectionEvent::Lost(format!("it sent more than {MAX_MESSAGES} messages in {seconds} s"));
                }
                () = self.tools_changed.notified() => return ConnectionEvent::ToolsChanged,
                () = sleep(IDLE_PING_INTERVAL), if self.process.is_none() => {
                    // A server can be busy with a call, and answer no ping meanwhile.
                    if !self.client.calls.are_any_open().await
                        && !matches!(timeout(IDLE_PING_INTERVAL, self.client.ping()).await, Ok(Ok(())))
                    {
                        return ConnectionEvent::Lost("it does not answer a ping".to_owned());
                    }
                }
            }
        }
    }

    pub(super) async fn close(self) {
        let Self { ended, process, .. } = self;
        // This closes stdin.
        drop(ended);
        if let Some(process) = process {
            process.end().await;
        }
    }
}

async fn run(service: RunningService<RoleClient, ServerHandler>) {
    let _ = service.waiting().await;
}

fn stderr_note(process: Option<&ServerProcess>) -> String {
    match process.map(ServerProcess::stderr_tail) {
        Some(tail) if !tail.is_empty() => format!("; its last lines on stderr: {tail}"),
        _ => String::new(),
    }
}
