//! Options of an HTTP tool.

use std::time::Duration;

use indexmap::IndexMap;
use reqwest::{
    Method,
    header::{AUTHORIZATION, HeaderName},
};
use serde::Deserialize;
use serde_json::Value;

use super::url_template::UrlTemplate;
use crate::{
    ApprovalRule, CallerHeader, Repeat,
    caller_headers::CallerHeaders,
    login::{
        Authorization, ClientAuth, LoginServer, TokenSource, callback_of, options as login_options,
        options::LoginKind,
    },
    options::{HeaderSource, check_each, check_not_zero},
};
use agui_base::{InvalidOption, units, upstream::trust::is_trusted_url};

const NEEDED_FOR_LOGIN: [&str; 3] =
    ["login_authorization_url", "login_token_url", "login_client_id"];
const MISSING_FOR_LOGIN: &str =
    "it is needed with `login`: a web service does not name its authorization server";
const CLIENT_HEADERS: [&str; 5] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade"];

/// Options of an HTTP tool: a table `[tools.NAME]` of the configuration.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct HttpToolOptions {
    /// The kind of the tool.
    pub kind: ToolKind,
    /// The description for the model, which decides by it when to call the tool.
    pub description: String,
    /// The URL, with `{arguments}` in the path and in the query:
    /// `https://api.example.com/{city}?lang={lang}`. A query pair is left out if its argument is
    /// missing. Other arguments are sent as a JSON body, or in the query if the method has no body.
    /// Arguments cannot change the host or the fixed parts. Redirects are not followed, and proxies
    /// of the environment are not used.
    pub url: String,
    /// The method of the request: `GET`, `HEAD`, `DELETE`, `POST`, `PUT` or `PATCH`. Default:
    /// `GET`.
    #[serde(default)]
    pub method: HttpMethod,
    /// The JSON Schema of the arguments. Default: a text for each place of the URL, required in the path. Unknown
    /// arguments are refused unless the schema has `additionalProperties`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<agui_protocol::JsonObject>"))]
    pub parameters: Option<Value>,
    /// Headers of the request, by name. A secret is in an environment variable, with a prefix
    /// before it.
    #[serde(default)]
    pub headers: IndexMap<String, HeaderSource>,
    /// Headers of the request with values of the caller, by name, which a model cannot set:
    /// `principal` (the name of the API key, or the token's subject), `principal_id` (the same with
    /// its source, such as `key:ada`), `claim:NAME` of the token, or `header:NAME` of the caller's
    /// request. A header without a value is left out; with `{ required = true }` the call is
    /// refused.
    #[serde(default)]
    pub headers_from: IndexMap<String, CallerHeader>,
    /// In place of a header `Authorization`: `person` lets each person log in at the service, by
    /// OAuth 2.1, when a call needs it (docs/configuration.md). Tools of the same host share the
    /// login, and have the same options of it. Needs `[secrets]`.
    pub login: Option<LoginKind>,
    /// With `login`: the page of the authorization server that a login begins at. It may have a query.
    pub(crate) login_authorization_url: Option<String>,
    /// With `login`: the token endpoint of the authorization server.
    pub login_token_url: Option<String>,
    /// With `login`: the endpoint that revokes tokens when a person disconnects the account (RFC 7009).
    pub(crate) login_revocation_url: Option<String>,
    /// With `login`: the issuer of the authorization server, as its metadata name it. The redirect
    /// address then belongs to this issuer alone; `agui-server check` prints it. Default: the
    /// address that all logins without it share.
    pub login_issuer: Option<String>,
    /// With `login`: the id of this server as a client of the authorization server.
    pub login_client_id: Option<String>,
    /// With `login`: the environment variable with the client's secret, if it has one.
    pub login_client_secret_env: Option<String>,
    /// With `login_client_secret_env`: the way to send the secret. Default: `basic`.
    pub(crate) login_client_auth: Option<ClientAuth>,
    /// With `login`: the scopes to ask for. If the list is empty, the authorization server decides.
    #[serde(default)]
    pub login_scopes: Vec<String>,
    /// The part of a JSON response that is the result, as a JSON Pointer, or a table with one for each member of the result.
    /// Default: all of it.
    pub result: Option<ResponseSelection>,
    /// The calls that a person has to approve: `never`, `always`, or a rule on the arguments.
    /// `{ unless = { path = "^/tmp/" } }`: all calls but those in which every pattern matches; a
    /// pattern without ^ or $ has to match the whole value. `{ when = { command = "rm|sudo" } }`:
    /// calls in which some pattern matches anywhere in the value. Arguments that are missing, lists
    /// or tables, and with `unless` also paths with `..`, need approval.
    #[serde(default)]
    pub approval: ApprovalRule,
    /// The rule for a call whose server was lost before its result was stored, when the run
    /// continues. Default: `safe` for GET and HEAD, `keyed` for PUT and DELETE, `never` for POST
    /// and PATCH.
    pub repeat: Option<Repeat>,
    /// The time limit of a call.
    #[serde(default = "default_timeout", rename = "timeout_secs", with = "units::Seconds")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub timeout: Duration,
    /// The largest result, in bytes. A longer text is cut.
    #[serde(default = "default_max_result_bytes")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_result_bytes: usize,
}

/// The kind of a tool that a configuration declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolKind {
    /// A tool that calls a web service.
    Http,
}

/// The part of a JSON response that is the result, by JSON Pointers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "expected a JSON Pointer, or a table of them such as { celsius = \"/current/temp\" }"
)]
pub enum ResponseSelection {
    /// One part.
    Part(String),
    /// An object with these members.
    Members(
        #[cfg_attr(feature = "schema", schemars(extend("minProperties" = 1)))]
        IndexMap<String, String>,
    ),
}

impl ResponseSelection {
    /// Returns whether there is a JSON Pointer, and none is invalid.
    fn is_valid(&self) -> bool {
        let is_pointer = |pointer: &String| pointer.is_empty() || pointer.starts_with('/');
        match self {
            Self::Part(pointer) => is_pointer(pointer),
            Self::Members(members) => !members.is_empty() && members.values().all(is_pointer),
        }
    }
}

/// The method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the names are those of HTTP")]
pub enum HttpMethod {
    #[default]
    Get,
    Head,
    Delete,
    Post,
    Put,
    Patch,
}

impl HttpMethod {
    pub(super) fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }

    /// Follows the method's semantics: <https://www.rfc-editor.org/rfc/rfc9110#section-9.2>.
    pub(super) fn repeat(self) -> Repeat {
        match self {
            Self::Get | Self::Head => Repeat::Safe,
            Self::Put | Self::Delete => Repeat::Keyed,
            Self::Post | Self::Patch => Repeat::Never,
        }
    }
}

impl From<HttpMethod> for Method {
    fn from(method: HttpMethod) -> Self {
        match method {
            HttpMethod::Get => Self::GET,
            HttpMethod::Head => Self::HEAD,
            HttpMethod::Delete => Self::DELETE,
            HttpMethod::Post => Self::POST,
            HttpMethod::Put => Self::PUT,
            HttpMethod::Patch => Self::PATCH,
        }
    }
}

fn default_timeout() -> Duration {
    Duration::from_secs(30)
}

fn default_max_result_bytes() -> usize {
    256 * 1024
}

impl HttpToolOptions {
    /// Checks the options without reading the environment. [`HttpTool::new`](super::HttpTool::new) also checks `url`
    /// and `parameters`.
    ///
    /// # Errors
    /// An [`InvalidOption`] for the first wrong option.
    pub fn check(&self) -> Result<(), InvalidOption> {
        if let Some(name) = self.headers.keys().find(|name| is_reserved(name)) {
            let problem = format!("`{}` is set by the server itself", name.to_ascii_lowercase());
            return Err(InvalidOption::new("headers", problem));
        }
        self.check_login()?;
        self.caller_headers()?;
        let is_wrong = self.result.as_ref().is_some_and(|selection| !selection.is_valid());
        check_each([(
            is_wrong,
            "result",
            "a JSON Pointer such as \"/current/summary\" begins with a `/`",
        )])?;
        check_not_zero([
            ("timeout_secs", self.timeout.is_zero()),
            ("max_result_bytes", self.max_result_bytes == 0),
        ])
    }

    fn check_login(&self) -> Result<(), InvalidOption> {
        let urls = [
            ("login_authorization_url", &self.login_authorization_url),
            ("login_token_url", &self.login_token_url),
            ("login_revocation_url", &self.login_revocation_url),
            ("login_issuer", &self.login_issuer),
        ];
        let further = [
            ("login_client_id", self.login_client_id.is_some()),
            ("login_client_secret_env", self.login_client_secret_env.is_some()),
            ("login_client_auth", self.login_client_auth.is_some()),
            ("login_scopes", !self.login_scopes.is_empty()),
        ];
        let further: Vec<_> =
            urls.iter().map(|(key, url)| (*key, url.is_some())).chain(further).collect();
        login_options::check(self.login, &further, &self.headers)?;
        let is_missing =
            |key, is_set: bool| self.login.is_some() && !is_set && NEEDED_FOR_LOGIN.contains(key);
        let is_untrusted =
            |url: &Option<String>| url.as_deref().is_some_and(|url| !is_trusted_url(url));
        let is_auth_of_none =
            self.login_client_auth.is_some() && self.login_client_secret_env.is_none();
        check_each(
            further.iter().map(|(key, is_set)| (is_missing(key, *is_set), *key, MISSING_FOR_LOGIN)),
        )?;
        check_each(
            urls.iter().map(|(key, url)| (is_untrusted(url), *key, login_options::UNTRUSTED_URL)),
        )?;
        check_each([(
            is_auth_of_none,
            "login_client_auth",
            "it is for `login_client_secret_env` only",
        )])
    }

    /// Returns the service as one that people log in at, with the client's secret from the
    /// environment, and its name, by which tools share a login: the host, which gets the tokens.
    /// `None` without `login`.
    pub fn login_server(&self) -> Result<Option<(String, LoginServer)>, InvalidOption> {
        let (Some(LoginKind::Person), Some(endpoint), Some(token_endpoint), Some(id)) = (
            self.login,
            &self.login_authorization_url,
            &self.login_token_url,
            &self.login_client_id,
        ) else {
            return Ok(None);
        };
        let template =
            UrlTemplate::parse(&self.url).map_err(|problem| InvalidOption::new("url", problem))?;
        let auth = self.login_client_auth.unwrap_or_default();
        let authorization = Authorization {
            endpoint: endpoint.clone(),
            scopes: self.login_scopes.clone(),
            issuer: self.login_issuer.clone(),
            names_issuer: false,
            callback: self.login_issuer.as_deref().map(callback_of),
            source: TokenSource {
                token_endpoint: token_endpoint.clone(),
                revocation_endpoint: self.login_revocation_url.clone(),
                client: login_options::client(id, self.login_client_secret_env.as_deref(), auth)?,
                resource: None,
            },
        };
        let server = LoginServer::written(template.host().to_owned(), authorization)?;
        Ok(Some((template.authority(), server)))
    }

    /// Returns the options that tools with the same login have in common.
    pub fn login_options(&self) -> impl PartialEq {
        let urls =
            (&self.login_authorization_url, &self.login_token_url, &self.login_revocation_url);
        let client = (&self.login_client_id, &self.login_client_secret_env, self.login_client_auth);
        (urls, client, &self.login_issuer, &self.login_scopes)
    }

    pub(super) fn caller_headers(&self) -> Result<CallerHeaders, InvalidOption> {
        let is_of_login = |name: &str| self.login.is_some() && name == AUTHORIZATION.as_str();
        let is_reserved =
            |name: &HeaderName| is_reserved(name.as_str()) || is_of_login(name.as_str());
        CallerHeaders::new(&self.headers_from, &self.headers, is_reserved)
    }
}

fn is_reserved(header: &str) -> bool {
    CLIENT_HEADERS.contains(&&*header.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEATHER: &str = "kind = \"http\"\ndescription = \"d\"\nurl = \"https://h/{city}\"\n";

    fn read(more: &str) -> Result<HttpToolOptions, toml::de::Error> {
        toml::from_str(&format!("{WEATHER}{more}"))
    }

    #[test]
    fn a_table_of_the_configuration_is_read_with_its_units() {
        let options = read(
            "method = \"POST\"\ntimeout_secs = 5\nheaders = { A = { env = \"KEY\" }, B = \"b\" }",
        )
        .unwrap();
        assert_eq!((options.method, options.timeout), (HttpMethod::Post, Duration::from_secs(5)));
        assert_eq!(options.headers["B"], "b".into());
        options.check().unwrap();
        let defaults = read("").unwrap();
        assert_eq!((defaults.method, defaults.timeout), (HttpMethod::Get, Duration::from_secs(30)));
        assert_eq!(
            (defaults.approval, defaults.max_result_bytes),
            (ApprovalRule::Never, 256 * 1024)
        );
    }

    const LOGIN: &str = "login = \"person\"\nlogin_authorization_url = \"https://id/a?x=y\"\n\
                         login_token_url = \"https://id/t\"\nlogin_client_id = \"agui\"\n";

    #[test]
    fn a_login_needs_what_no_service_says() {
        read(LOGIN).unwrap().check().unwrap();
        assert_eq!(read(LOGIN).unwrap().login_server().unwrap().unwrap().0, "h");
        let with_port = read(LOGIN)
            .map(|options| HttpToolOptions { url: "https://h:8443/x".into(), ..options })
            .unwrap();
        assert_eq!(with_port.login_server().unwrap().unwrap().0, "h:8443");
        let without = |option: &str| -> String {
            LOGIN
                .lines()
                .filter(|line| !line.starts_with(option))
                .map(|line| format!("{line}\n"))
                .collect()
        };
        let with = |more: &str| format!("{LOGIN}{more}");
        for (text, expected) in [
            (without("login_token_url"), "login_token_url: it is needed with `login`"),
            (
                without("login_authorization_url"),
                "login_authorization_url: it is needed with `login`",
            ),
            (without("login_client_id"), "login_client_id: it is needed with `login`"),
            (without("login ="), "login_authorization_url: it is for `login` only"),
            (
                "login_client_auth = \"post\"".to_owned(),
                "login_client_auth: it is for `login` only",
            ),
            (LOGIN.replace("https://id/t", "http://id/t"), "login_token_url: expected https"),
            (
                LOGIN.replace("https://id/a", "https://u:p@id/a"),
                "login_authorization_url: expected https, without",
            ),
            (with("login_revocation_url = \"ftp://id/\""), "login_revocation_url: expected https"),
            (
                with("login_client_auth = \"post\""),
                "login_client_auth: it is for `login_client_secret_env` only",
            ),
            (
                with("headers = { authorization = \"x\" }"),
                "headers: `authorization` is set by `login`",
            ),
            (
                with("headers_from = { Authorization = \"header:x\" }"),
                "headers_from: `authorization` is set by the server itself",
            ),
        ] {
            let error = read(&text).unwrap().check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}\n{error}");
        }
        let unset = read(&with("login_client_secret_env = \"AGUI_NOT_THERE\"")).unwrap();
        let error = unset.login_server().err().unwrap().to_string();
        assert_eq!(
            error,
            "login_client_secret_env: the environment variable AGUI_NOT_THERE is not set"
        );
        // `new` has no logins, so nothing would add the token.
        let error = super::super::HttpTool::new("t", read(LOGIN).unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("login: only a server with a configuration"), "{error}");
    }

    #[test]
    fn wrong_options_are_named() {
        for (text, expected) in [
            ("timeout_secs = 0", "timeout_secs: at least 1"),
            ("max_result_bytes = 0", "max_result_bytes: at least 1"),
            ("result = \"a/b\"", "result: a JSON Pointer"),
            ("result = { a = \"/a\", b = \"b\" }", "result: a JSON Pointer"),
            ("result = {}", "result: a JSON Pointer"),
            ("headers = { Host = \"evil\" }", "headers: `host` is set by the server itself"),
            (
                "headers_from = { Host = \"principal\" }",
                "headers_from: `host` is set by the server itself",
            ),
            (
                "headers = { A = \"a\" }\nheaders_from = { a = \"principal\" }",
                "headers_from: `a` is set twice",
            ),
        ] {
            let error = read(text).unwrap().check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}\n{error}");
        }
        for (text, expected) in [
            ("method = \"TRACE\"", "unknown variant `TRACE`"),
            ("metod = \"GET\"", "unknown field `metod`"),
            ("approval = \"sometimes\"", "unknown variant `sometimes`"),
            ("approval = { unless = { city = \"(\" } }", "the pattern of `city`"),
        ] {
            assert!(read(text).unwrap_err().message().starts_with(expected), "{text}");
        }
        assert!(
            toml::from_str::<HttpToolOptions>("kind = \"http\"")
                .unwrap_err()
                .message()
                .contains("missing field")
        );
    }
}
