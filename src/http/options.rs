//! Options of the routes.

use std::{collections::HashSet, time::Duration};

use smart_default::SmartDefault;

use super::{
    accept::cors::Cors,
    allow::AllowRule,
    client_options::{
        AiSdkOptions, CopilotKitOptions, NamedEventOptions, OpenAiOptions, SupportedClients,
    },
};

/// Options of the routes. Handlers read them in the state that all routes share.
#[derive(Debug, Clone, SmartDefault)]
pub struct HttpOptions {
    /// The largest request body, in bytes.
    #[default(10 * 1024 * 1024)]
    pub max_body_bytes: usize,
    /// The bytes of the request bodies that all clients are sending, together. At least two bodies of the largest size
    /// fit. Without authentication or with one API key a single caller may use all of it, otherwise half.
    #[default(128 * 1024 * 1024)]
    pub max_body_bytes_in_flight: usize,
    /// The bytes of the responses with messages of threads that clients are being sent, together. At least two of the largest
    /// threads fit, and with several principals one gets at most half.
    #[default(128 * 1024 * 1024)]
    pub max_response_bytes_in_flight: usize,
    /// The largest number of streams without an end: event streams, and WebSockets. With several
    /// principals, each gets at most its share ([`PrincipalLimits`](agui_run::PrincipalLimits)).
    /// More are refused with 503.
    #[default(2000)]
    pub max_streams: usize,
    /// The silence after which the stream of a followed run gets a keep-alive comment.
    #[default(Some(Duration::from_secs(15)))]
    pub keep_alive: Option<Duration>,
    /// The time for receiving a request's body, beside a second for each 16 KiB of it that have arrived.
    #[default(Duration::from_secs(30))]
    pub body_timeout: Duration,
    /// The web pages that may use the server.
    pub cors: Cors,
    /// The clients that are served.
    pub clients: SupportedClients,
    /// The routes for pages with CopilotKit. A server with an invalid prefix does not start.
    pub copilotkit: CopilotKitOptions,
    /// The routes for pages with the AI SDK. A server with an invalid prefix does not start.
    pub ai_sdk: AiSdkOptions,
    /// The [named-event endpoints](crate::named_events).
    pub named_events: NamedEventOptions,
    /// The routes for clients of OpenAI's API.
    pub openai: OpenAiOptions,
    /// The host names, without port, that a server without authentication answers under, in addition to names like
    /// `localhost` and IP addresses; `*` allows all. Others are refused, because a web page can rebind its own DNS name to
    /// this server. With authentication all names are allowed.
    pub allowed_hosts: Vec<String>,
    /// The URL at which browsers reach the server, in all addresses that it makes. Agents at other servers then get URLs of
    /// files in place of data. Without it, an address has the `Host` of the request, and the scheme and the path that a
    /// proxy reports.
    pub public_url: Option<String>,
    /// The names of request headers that are passed on to agents. No others are.
    pub pass_headers: Vec<String>,
    /// The agents of whose subagents a client that declares no version of AG-UI gets no `SUBAGENT_*` events.
    pub without_subagents: HashSet<String>,
    /// The path of the route that makes text of speech, if the server has one: pages then have a microphone.
    pub transcribe_path: Option<String>,
    /// The callers of agents that are not for everyone.
    pub allow: Vec<AllowRule>,
    /// True makes a request with `traceparent` a part of the caller's trace. With false, each request begins its own.
    #[default(true)]
    pub accept_traceparent: bool,
}
