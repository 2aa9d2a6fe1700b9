//! Options of an MCP server.

use std::{sync::Arc, time::Duration};

use indexmap::IndexMap;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName};
use rmcp::model::ProtocolVersion;
use serde::Deserialize;
use smart_default::SmartDefault;

use super::{annotations::McpApproval, oauth::OAuthOptions, tokens::Tokens};
use agui_base::InvalidOption;
use agui_base::units;
use agui_base::upstream::{
    secret_names::secret_variable,
    trust::{is_trusted_url, server_url},
};
use agui_tools::{
    Repeat,
    host::{CallerHeader, CallerHeaders},
    login::{LoginServer, PersonTokens, options as login_options, options::LoginKind},
    options::{HeaderSource, check_each, check_not_zero, header_map},
};

const PROTOCOL_HEADERS: [&str; 4] =
    ["accept", "mcp-session-id", "mcp-protocol-version", "last-event-id"];
const INVALID_URL: &str =
    "expected a URL such as \"https://mcp.example.com/mcp\", without credentials";
/// Headers that describe the connection or the body.
const CLIENT_HEADERS: [&str; 6] =
    ["host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade"];

/// Options of an MCP server: a table `[mcp.NAME]` of the configuration.
#[derive(Debug, Clone, PartialEq, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct McpServerOptions {
    /// The program that speaks MCP on its standard streams, and its arguments. Either this or `url` is needed.
    pub command: Option<Vec<String>>,
    /// The URL of a server with streamable HTTP, without credentials. Either this or `command` is needed.
    pub url: Option<String>,
    /// With a command: its environment variables, by name. Of those of this server it gets PATH,
    /// HOME, USER, LANG, TZ and TMPDIR, and those in `env_from`.
    pub env: IndexMap<String, String>,
    /// With a command: the environment variables that it gets from this server's environment.
    pub env_from: Vec<String>,
    /// With a URL: headers of the requests, by name. A secret is in an environment variable.
    pub headers: IndexMap<String, HeaderSource>,
    /// With a URL: headers of the requests that a run makes, with values of the run's caller, by
    /// name, as for `[tools]`. Requests of the server itself, such as listing the tools, do not
    /// have them.
    pub headers_from: IndexMap<String, CallerHeader>,
    /// With a URL: access tokens by OAuth 2.1 client credentials.
    #[doc(hidden)]
    pub oauth: Option<OAuthOptions>,
    /// With a URL, in place of `oauth`: `person` lets each person log in at the MCP server, by
    /// OAuth 2.1, when a call needs it (docs/configuration.md). Needs `[secrets]`.
    #[doc(hidden)]
    pub login: Option<LoginKind>,
    /// With `login`: the host names of the authorization servers that may be used, also those with
    /// private addresses. Default: the host of `url`, and hosts with public addresses and https
    /// that the MCP server names.
    #[doc(hidden)]
    pub login_hosts: Vec<String>,
    /// With `login`: the issuer of the only authorization server that may be used, as its metadata
    /// name it. With `login_client_id`, the redirect address then belongs to this issuer alone;
    /// `agui-server check` prints it.
    #[doc(hidden)]
    pub login_issuer: Option<String>,
    /// With `login`: the id of this server as a client of the authorization server. Default: it registers itself.
    #[doc(hidden)]
    pub login_client_id: Option<String>,
    /// With `login_client_id`: the environment variable with the client's secret, if it has one.
    #[doc(hidden)]
    pub login_client_secret_env: Option<String>,
    /// With `login`: the scopes to ask for. Default: the scopes that the MCP server names.
    #[doc(hidden)]
    pub login_scopes: Vec<String>,
    /// The revision of the protocol that is offered to the MCP server, by `initialize`. Tools that ask the user while they
    /// run (`ctx.elicit` of FastMCP) need `2025-11-25`, because later revisions have no such questions. Default: the
    /// newest revision that the MCP server has.
    pub revision: Option<McpRevision>,
    /// True answers `GET /readyz` with 503 while the MCP server is not connected.
    pub required: bool,
    /// True lets the MCP server ask the user during a call (elicitation). The run ends with an
    /// interrupt, and the run with the answer continues the call; with servers from before
    /// 2026-07-28 it makes the call again from its start.
    #[default(true)]
    pub elicitation: bool,
    /// True lets pages of the MCP server (MCP Apps) be shown in front ends, and answers their
    /// requests. A page is HTML of the MCP server, which some front ends give access to their own
    /// page and its storage: only for servers that you trust.
    pub apps: bool,
    /// The tools that agents can use, by the names that the server gives them. Default: all.
    pub tools: Option<Vec<String>>,
    /// A prefix for the names of the tools. Of several tools with one name, the first is offered.
    pub prefix: String,
    /// The calls that a person has to approve, as for `[tools]`, for all tools of the server.
    /// `annotations`: calls of tools that the server calls destructive or open-world, or does not
    /// describe; only for servers that you trust.
    pub approval: McpApproval,
    /// The calls of single tools that a person has to approve, by the name that the server gives the tool,
    /// `resources/read` or `prompts/get`.
    pub approval_of: IndexMap<String, McpApproval>,
    /// The rule for calls whose server was lost before their result was stored, when the run
    /// continues. With `keyed`, the MCP server knows `_meta.idempotencyKey`. Default: `safe` for
    /// tools with `readOnlyHint` or `idempotentHint`, otherwise `never`.
    pub repeat: Option<Repeat>,
    /// The time limit of a call. It begins again when the server reports progress, up to
    /// `max_timeout_secs` in all.
    #[serde(rename = "timeout_secs", with = "units::Seconds")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(Duration::from_secs(60))]
    pub timeout: Duration,
    /// The time limit of a call, whatever progress the server reports.
    #[serde(rename = "max_timeout_secs", with = "units::Seconds")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(Duration::from_secs(600))]
    pub max_timeout: Duration,
    /// The largest result, in bytes. A longer one is cut, and so is one of more than 1,000 parts.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(1024 * 1024)]
    pub max_result_bytes: usize,
}

/// A revision of the protocol that a configuration can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum McpRevision {
    /// The last revision in which a server asks the user during a call.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
}

impl McpRevision {
    pub(super) fn version(self) -> ProtocolVersion {
        match self {
            Self::V2025_11_25 => ProtocolVersion::V_2025_11_25,
        }
    }
}

/// The way to a server, with all secrets.
pub(super) enum McpTransport {
    Command {
        program: String,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
    },
    Http {
        url: String,
        headers: HeaderMap,
        /// The access tokens for the server, if it needs some. They outlive a session.
        tokens: Option<Tokens>,
    },
}

impl McpServerOptions {
    /// A server that is started as a process: a program and its arguments.
    pub fn command(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { command: Some(command.into_iter().map(Into::into).collect()), ..Self::default() }
    }

    /// A server that speaks streamable HTTP.
    pub fn url(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// Checks the options without reading the environment.
    ///
    /// # Errors
    /// An [`InvalidOption`] for the first wrong option.
    pub fn check(&self) -> Result<(), InvalidOption> {
        let (has_command, has_url) = (self.command.is_some(), self.url.is_some());
        if !has_command && !has_url {
            let problem = "an MCP server needs `command`, a program to start, or `url`, an address";
            return Err(InvalidOption::whole(problem));
        }
        let has_program =
            self.command.iter().flatten().next().is_some_and(|program| !program.is_empty());
        let is_valid_url = self.url.as_deref().is_some_and(|url| server_url(url).is_some());
        check_each([
            (has_command && has_url, "url", "there is a `command` already; set only one of them"),
            (has_command && !has_program, "command", "expected a program and its arguments"),
            (has_command && !self.headers.is_empty(), "headers", "only a `url` has headers"),
            (
                has_command && !self.headers_from.is_empty(),
                "headers_from",
                "only a `url` has headers",
            ),
            (has_command && self.oauth.is_some(), "oauth", "only a `url` has access tokens"),
            (has_url && !self.env.is_empty(), "env", "only a `command` has an environment"),
            (
                has_url && !self.env_from.is_empty(),
                "env_from",
                "only a `command` has an environment",
            ),
            (has_url && !is_valid_url, "url", INVALID_URL),
        ])?;
        if let Some(name) =
            self.headers.keys().find(|name| PROTOCOL_HEADERS.contains(&&*name.to_ascii_lowercase()))
        {
            let problem = format!("`{}` is set by the protocol", name.to_ascii_lowercase());
            return Err(InvalidOption::new("headers", problem));
        }
        if let Some(oauth) = &self.oauth {
            oauth.check()?;
            let is_set =
                self.headers.keys().any(|name| name.eq_ignore_ascii_case(AUTHORIZATION.as_str()));
            check_each([(is_set, "headers", "`authorization` is set by `oauth`")])?;
        }
        self.check_login()?;
        self.caller_headers()?;
        let is_portable =
            self.prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let is_wrong = !is_portable || self.prefix.len() > 64;
        check_each([(
            is_wrong,
            "prefix",
            "names of tools have at most 64 letters, digits, `-` and `_`",
        )])?;
        check_not_zero([
            ("timeout_secs", self.timeout.is_zero()),
            ("max_timeout_secs", self.max_timeout.is_zero()),
            ("max_result_bytes", self.max_result_bytes == 0),
        ])
    }

    fn check_login(&self) -> Result<(), InvalidOption> {
        let further = [
            ("login_hosts", !self.login_hosts.is_empty()),
            ("login_issuer", self.login_issuer.is_some()),
            ("login_client_id", self.login_client_id.is_some()),
            ("login_client_secret_env", self.login_client_secret_env.is_some()),
            ("login_scopes", !self.login_scopes.is_empty()),
        ];
        login_options::check(self.login, &further, &self.headers)?;
        let has_login = self.login.is_some();
        let is_issuer_wrong =
            self.login_issuer.as_deref().is_some_and(|issuer| !is_trusted_url(issuer));
        let is_bound = self.login_issuer.is_some() || !self.login_hosts.is_empty();
        let is_secret_unbound = self.login_client_secret_env.is_some() && !is_bound;
        let is_secret_of_none =
            self.login_client_secret_env.is_some() && self.login_client_id.is_none();
        check_each([
            (has_login && self.url.is_none(), "login", "only a `url` has logins"),
            (
                has_login && self.oauth.is_some(),
                "login",
                "there is `oauth` already; set only one of them",
            ),
            (is_issuer_wrong, "login_issuer", login_options::UNTRUSTED_URL),
            (is_secret_of_none, "login_client_secret_env", "it is for `login_client_id` only"),
            (
                is_secret_unbound,
                "login_client_secret_env",
                "set `login_issuer`: else the MCP server says who gets it",
            ),
        ])
    }

    /// Returns the server as one that people log in at, with the client's secret from the
    /// environment; `None` without `login`.
    #[doc(hidden)]
    pub fn login_server(&self) -> Result<Option<LoginServer>, InvalidOption> {
        let (Some(LoginKind::Person), Some(url)) = (self.login, &self.url) else { return Ok(None) };
        let (id, secret_env) =
            (self.login_client_id.as_deref(), self.login_client_secret_env.as_deref());
        let client =
            id.map(|id| login_options::client(id, secret_env, Default::default())).transpose()?;
        let (issuer, scopes) = (self.login_issuer.clone(), self.login_scopes.clone());
        LoginServer::discovered(url, &self.login_hosts, issuer, client, scopes).map(Some)
    }

    pub(super) fn caller_headers(&self) -> Result<CallerHeaders, InvalidOption> {
        let is_reserved = |name: &HeaderName| {
            let name = name.as_str();
            let is_of_oauth =
                (self.oauth.is_some() || self.login.is_some()) && name == AUTHORIZATION.as_str();
            // The protocol copies arguments of a model into headers of this prefix.
            let is_of_protocol = PROTOCOL_HEADERS.contains(&name) || name.starts_with("mcp-");
            is_of_oauth || is_of_protocol || CLIENT_HEADERS.contains(&name)
        };
        CallerHeaders::new(&self.headers_from, &self.headers, is_reserved)
    }

    /// Returns the way to the server. A person's tokens replace those of this server.
    pub(super) fn transport(
        &self,
        person: Option<Arc<PersonTokens>>,
    ) -> Result<McpTransport, InvalidOption> {
        self.check()?;
        if let Some(url) = &self.url {
            let of_server = || {
                self.oauth.as_ref().map(|oauth| Ok(Tokens::OfServer(Arc::new(oauth.tokens(url)?))))
            };
            let tokens =
                person.map(|person| Ok(Tokens::OfPerson(person))).or_else(of_server).transpose()?;
            return Ok(McpTransport::Http {
                url: url.clone(),
                headers: header_map(&self.headers)?,
                tokens,
            });
        }
        let mut command = self.command.iter().flatten().cloned();
        let mut environment: Vec<_> =
            self.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        for name in &self.env_from {
            let value =
                secret_variable(name).map_err(|problem| InvalidOption::new("env_from", problem))?;
            environment.push((name.clone(), value));
        }
        let program = command.next().unwrap_or_default();
        Ok(McpTransport::Command { program, arguments: command.collect(), environment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_tools::ApprovalRule;

    #[test]
    fn a_table_of_the_configuration_is_read_with_its_units() {
        let text = "command = [\"npx\", \"x\"]\nenv = { A = \"b\" }\nprefix = \"files_\"\ntimeout_secs = 5\n\
                    approval = { unless = { path = \"^/tmp/\" } }\napproval_of = { write_file = \"always\" }";
        let options: McpServerOptions = toml::from_str(text).unwrap();
        assert_eq!(
            (options.timeout, options.max_result_bytes),
            (Duration::from_secs(5), 1024 * 1024)
        );
        assert_eq!(options.approval_of["write_file"], ApprovalRule::Always.into());
        assert_eq!(
            (options.max_timeout, options.elicitation, options.required),
            (Duration::from_secs(600), true, false)
        );
        options.check().unwrap();
        assert!(
            toml::from_str::<McpServerOptions>("timeout = 5")
                .unwrap_err()
                .message()
                .contains("unknown field")
        );
    }

    #[test]
    fn wrong_options_are_named() {
        for (text, expected) in [
            ("", "an MCP server needs `command`"),
            ("command = [\"x\"]\nurl = \"http://h\"", "url: there is a `command` already"),
            ("command = [\"\"]", "command: expected a program"),
            ("command = [\"x\"]\nheaders = { A = \"b\" }", "headers: only a `url`"),
            (
                "command = [\"x\"]\nheaders_from = { A = \"principal\" }",
                "headers_from: only a `url`",
            ),
            (
                "command = [\"x\"]\noauth = { token_url = \"https://h\", client_id = \"a\" }",
                "oauth: only a `url`",
            ),
            (
                "url = \"http://h\"\nheaders_from = { Mcp-Name = \"principal\" }",
                "headers_from: `mcp-name` is set by",
            ),
            (
                "url = \"http://h\"\nheaders_from = { Host = \"principal\" }",
                "headers_from: `host` is set by",
            ),
            (
                "url = \"http://h\"\noauth = { token_url = \"http://id.test\", client_id = \"a\" }",
                "oauth.token_url: ",
            ),
            (
                "url = \"http://h\"\noauth = { token_url = \"https://id.test\", client_id = \"\" }",
                "oauth.client_id: ",
            ),
            (
                "url = \"http://h\"\nheaders = { Authorization = \"x\" }\n\
                 oauth = { token_url = \"https://h\", client_id = \"a\", client_secret_env = \"PATH\" }",
                "headers: `authorization` is set by `oauth`",
            ),
            (
                "url = \"http://h\"\nlogin = \"person\"\nlogin_client_id = \"a\"\nlogin_client_secret_env = \"PATH\"",
                "login_client_secret_env: set `login_issuer`",
            ),
            (
                "url = \"http://h\"\nlogin = \"person\"\nlogin_issuer = \"http://id.test\"",
                "login_issuer: expected https",
            ),
            ("url = \"http://h\"\nmax_timeout_secs = 0", "max_timeout_secs: at least 1"),
            ("url = \"http://h\"\nenv = { A = \"b\" }", "env: only a `command`"),
            ("url = \"http://h\"\nenv_from = [\"A\"]", "env_from: only a `command`"),
            ("url = \"file:///x\"", "url: expected a URL"),
            ("url = \"http://u:p@h/\"", "url: expected a URL"),
            (
                "url = \"http://h\"\nheaders = { Accept = \"x\" }",
                "headers: `accept` is set by the protocol",
            ),
            ("url = \"http://h\"\nprefix = \"a b\"", "prefix: names of tools"),
            ("url = \"http://h\"\ntimeout_secs = 0", "timeout_secs: at least 1"),
            ("url = \"http://h\"\nmax_result_bytes = 0", "max_result_bytes: at least 1"),
        ] {
            let error =
                toml::from_str::<McpServerOptions>(text).unwrap().check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}\n{error}");
        }
    }
}
