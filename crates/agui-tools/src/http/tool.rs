//! A tool that calls a web service.

use std::fmt;

use async_trait::async_trait;
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, HeaderMap, HeaderValue},
};
use serde_json::{Value, json};

use super::{options::HttpToolOptions, response, url_template::UrlTemplate};
use crate::{
    Approval, Repeat, Tool, ToolContext, ToolError, ToolSpec, Validator,
    caller_headers::CallerHeaders,
    login::{PersonLogin, PersonTokens},
    options::header_map,
    secrets::Secrets,
};
use agui_agent::host::owner_of;
use agui_base::{InvalidOption, trace::TRACEPARENT, upstream};
use agui_protocol::{JsonObject, MessageContent};

/// Header of the IETF's draft:
/// <https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A tool that calls a web service.
pub struct HttpTool {
    spec: ToolSpec,
    options: HttpToolOptions,
    headers: HeaderMap,
    caller_headers: CallerHeaders,
    template: UrlTemplate,
    secrets: Secrets,
    client: Client,
    login: Option<PersonLogin>,
}

impl HttpTool {
    /// Makes a tool. Reads the environment variables that the headers name.
    ///
    /// # Errors
    /// An [`InvalidOption`] for the first wrong option.
    pub fn new(name: impl Into<String>, options: HttpToolOptions) -> Result<Self, InvalidOption> {
        Self::build(name.into(), options, None)
    }

    /// Like [`new`](Self::new), for a service that people may log in at.
    pub fn build(
        name: String,
        options: HttpToolOptions,
        login: Option<PersonLogin>,
    ) -> Result<Self, InvalidOption> {
        options.check()?;
        let invalid = |key: &'static str| move |problem: String| InvalidOption::new(key, problem);
        if options.login.is_some() && login.is_none() {
            return Err(invalid("login")(
                "only a server with a configuration has logins".to_owned(),
            ));
        }
        let template = UrlTemplate::parse(&options.url).map_err(invalid("url"))?;
        let parameters = parameters(&options, &template).map_err(invalid("parameters"))?;
        Validator::new(&parameters).map_err(invalid("parameters"))?;
        let headers = header_map(&options.headers)?;
        let client =
            upstream::direct_client(&upstream::ClientOptions::default()).map_err(|error| {
                invalid("url")(format!("the HTTP client cannot be created: {error}"))
            })?;
        let secrets = Secrets::from_headers(&headers);
        let caller_headers = options.caller_headers()?;
        let spec = ToolSpec { name, description: options.description.clone(), parameters };
        Ok(Self { spec, options, headers, caller_headers, template, secrets, client, login })
    }

    fn request(
        &self,
        arguments: &JsonObject,
        of_caller: HeaderMap,
    ) -> Result<RequestBuilder, String> {
        let places = self.template.places();
        let rest =
            arguments.iter().filter(|(name, _)| !places.iter().any(|(place, _)| place == name));
        let method = Method::from(self.options.method);
        let mut request = if self.options.method.has_body() {
            let body: JsonObject =
                rest.map(|(name, value)| (name.clone(), value.clone())).collect();
            self.client.request(method, self.template.fill(arguments, &[])?).json(&body)
        } else {
            // An argument must not repeat a parameter that the configuration has set.
            let query: Vec<_> = rest.filter(|(name, _)| !self.template.sets(name)).collect();
            self.client.request(method, self.template.fill(arguments, &query)?)
        };
        if !self.headers.contains_key(ACCEPT) {
            request = request.header(ACCEPT, "application/json, text/*;q=0.9, */*;q=0.5");
        }
        Ok(request.headers(self.headers.clone()).headers(of_caller))
    }

    /// Sends a request with the token of the run's person, and once more with another token if the service refuses it with 401.
    ///
    /// # Errors
    /// If the service takes no token, the question to log in.
    async fn sent_with_token(
        &self,
        request: impl Fn() -> Result<RequestBuilder, ToolError>,
        login: &PersonLogin,
        cx: &ToolContext,
        secrets: &mut Secrets,
    ) -> Result<Response, ToolError> {
        let tokens = PersonTokens::new(login.clone(), Some(owner_of(cx.principal())));
        let no_token = |error| {
            ToolError::new("There is no access token now. Try again later.").caused_by(error)
        };
        let mut token = tokens.current().await.map_err(no_token)?;
        for is_last in [false, true] {
            let Some(tried) = token else { break };
            tokens.secrets().iter().for_each(|secret| secrets.add(secret));
            let response = self.sent(request()?.bearer_auth(&tried)).await?;
            if response.status() != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            token = if is_last { None } else { tokens.replace(&tried).await.map_err(no_token)? };
        }
        Err(login.question(cx))
    }

    async fn sent(&self, request: RequestBuilder) -> Result<Response, ToolError> {
        request.send().await.map_err(|error| {
            let host = self.template.host();
            let message = if error.is_connect() {
                format!("{host} cannot be reached.")
            } else if error.is_timeout() {
                format!("{host} does not answer.")
            } else {
                format!("The request to {host} failed.")
            };
            // The URL has the arguments in it, which must not be logged.
            ToolError::new(message).caused_by(error.without_url())
        })
    }
}

#[async_trait]
impl Tool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn approval(&self, arguments: &JsonObject) -> Approval {
        self.options.approval.decide(arguments)
    }

    fn repeat(&self, _: &JsonObject) -> Repeat {
        self.options.repeat.unwrap_or_else(|| self.options.method.repeat())
    }

    async fn call(
        &self,
        arguments: JsonObject,
        cx: &ToolContext,
    ) -> Result<MessageContent, ToolError> {
        let mut of_caller = self.caller_headers.for_call(cx)?;
        let mut secrets = self.secrets.clone();
        secrets.extend(&Secrets::from_headers(&of_caller));
        // The first attempt needs the key, too: the server has to know it when the second one
        // comes.
        if self.repeat(&arguments) != Repeat::Safe
            && !self.headers.contains_key(IDEMPOTENCY_KEY)
            && let Ok(key) = HeaderValue::try_from(cx.idempotency_key())
        {
            of_caller.insert(IDEMPOTENCY_KEY, key);
        }
        if !self.headers.contains_key(TRACEPARENT) {
            cx.trace().add_to(&mut of_caller);
        }
        let request = || self.request(&arguments, of_caller.clone()).map_err(ToolError::new);
        let responded = async {
            let response = match &self.login {
                Some(login) => self.sent_with_token(request, login, cx, &mut secrets).await?,
                None => self.sent(request()?).await?,
            };
            response::to_content(
                response,
                self.options.result.as_ref(),
                self.options.max_result_bytes,
            )
            .await
        };
        let Ok(result) = tokio::time::timeout(self.options.timeout, responded).await else {
            let (host, seconds) = (self.template.host(), self.options.timeout.as_secs_f32());
            return Err(ToolError::new(format!("{host} did not answer within {seconds} s.")));
        };
        secrets.redact_result(result)
    }
}

impl fmt::Debug for HttpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTool")
            .field("name", &self.spec.name)
            .field("url", &self.options.url)
            .finish_non_exhaustive()
    }
}

fn parameters(options: &HttpToolOptions, template: &UrlTemplate) -> Result<Value, String> {
    let places = template.places();
    let Some(schema) = &options.parameters else {
        let properties: JsonObject = places
            .iter()
            .map(|(name, _)| ((*name).to_owned(), json!({ "type": "string" })))
            .collect();
        let required: Vec<_> =
            places.iter().filter(|(_, required)| *required).map(|(name, _)| *name).collect();
        return Ok(json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        }));
    };
    let mut schema = schema.as_object().ok_or("a schema of arguments is a table")?.clone();
    let properties =
        schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some((name, _)) = places.iter().find(|(name, _)| !properties.contains_key(*name)) {
        return Err(format!(
            "the URL has a place for `{name}`, which `properties` does not describe"
        ));
    }
    let is_fixed =
        |name: &&String| template.sets(name) && !places.iter().any(|(place, _)| place == name);
    if let Some(name) = properties.keys().find(is_fixed).filter(|_| !options.method.has_body()) {
        return Err(format!("`{name}` is set by the URL already"));
    }
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    // Otherwise a model could add arguments that the service takes and the configuration does not
    // name.
    schema.entry("additionalProperties").or_insert(Value::Bool(false));
    Ok(Value::Object(schema))
}

#[cfg(test)]
mod tests {
    use super::{super::options::ResponseSelection, *};

    fn tool(
        url: &str,
        change: impl FnOnce(&mut HttpToolOptions),
    ) -> Result<HttpTool, InvalidOption> {
        let options = json!({ "kind": "http", "description": "The weather", "url": url });
        let mut options = serde_json::from_value(options).unwrap();
        change(&mut options);
        HttpTool::new("weather", options)
    }

    fn refused(change: impl FnOnce(&mut HttpToolOptions)) -> String {
        tool("https://api.example.com/{city}?units=metric&lang={lang}", change)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn without_a_schema_each_place_of_the_url_is_a_string() {
        let tool = tool("https://h/{city}?lang={lang}", |_| {}).unwrap();
        let expected = json!({
            "type": "object",
            "properties": { "city": { "type": "string" }, "lang": { "type": "string" } },
            "required": ["city"],
            "additionalProperties": false
        });
        assert_eq!(tool.spec().parameters, expected);
    }

    #[tokio::test]
    async fn unknown_arguments_are_refused_unless_the_schema_allows_them() {
        for (schema, is_allowed) in [
            (json!({ "properties": { "q": {} } }), false),
            (json!({ "additionalProperties": true }), true),
        ] {
            let tool = tool("https://h/", |options| options.parameters = Some(schema)).unwrap();
            let checked =
                Validator::new(&tool.spec().parameters).unwrap().check(r#"{"admin":1}"#).await;
            assert_eq!(checked.is_ok(), is_allowed);
        }
    }

    #[test]
    fn wrong_options_are_named() {
        for (error, expected) in [
            (refused(|options| options.url = "https://{h}/".into()), "url: the host is fixed"),
            (
                refused(|options| options.result = Some(ResponseSelection::Part("a/b".into()))),
                "result: a JSON Pointer",
            ),
            (
                refused(|options| drop(options.headers.insert("a b".into(), "".into()))),
                "headers: \"a b\"",
            ),
            (refused(|options| options.parameters = Some(json!([]))), "parameters: a schema"),
            (
                refused(|options| options.parameters = Some(json!({ "type": "array" }))),
                "parameters: ",
            ),
            (
                refused(|options| {
                    options.parameters = Some(json!({ "properties": { "city": {} } }))
                }),
                "parameters: the URL has a place for `lang`",
            ),
            (
                refused(|options| {
                    let properties = json!({ "city": {}, "lang": {}, "units": {} });
                    options.parameters = Some(json!({ "properties": properties }));
                }),
                "parameters: `units` is set by the URL",
            ),
        ] {
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
