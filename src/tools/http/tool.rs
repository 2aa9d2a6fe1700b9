//! Tools that ask a web service, as the configuration declares them.
//!
//! A call is one request. Arguments stand in the places of the address; those without a place go into
//! the body, as JSON, or into the query when the method has no body. A list in the query is repeated (`tag=a&tag=b`), an
//! argument that is missing leaves its whole pair out.
//!
//! **No way to other addresses.** The scheme, host and port are those of the configuration whatever the arguments say,
//! redirects are not followed, and proxies that the environment names are not used. The secrets in the headers reach
//! neither a log nor a model: also an answer that repeats them is told without them.

mod answer;
mod template;

use std::{collections::HashSet, fmt, time::Duration};

use async_trait::async_trait;
use reqwest::{
    Client, Method,
    header::{ACCEPT, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, TRANSFER_ENCODING, UPGRADE},
};
use serde_json::{Value, json};

use self::template::Template;
use super::{Approval, ApprovalRule, Tool, ToolContext, ToolError, ToolSpec, Validator};
use crate::{
    protocol::{JsonObject, MessageContent},
    upstream,
};

/// How long a call may take, if nothing else was said.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest answer, in bytes, if nothing else was said.
pub const MAX_RESULT: usize = 256 * 1024;

/// What a tool asks, and how.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The tool's name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// A JSON Schema of its arguments. If left out: a text for each place of the address, needed where it is in the
    /// path. Arguments that it does not know are refused unless it says `additionalProperties` itself.
    pub parameters: Option<Value>,
    /// GET, POST and so on.
    pub method: Method,
    /// The address, with places for arguments in braces.
    pub url: String,
    /// Headers, with their secrets.
    pub headers: HeaderMap,
    /// Which part of a JSON answer is the result, as a JSON Pointer; all of it if left out.
    pub result: Option<String>,
    /// When somebody has to agree to a call.
    pub approval: ApprovalRule,
    /// How long a call may take.
    pub timeout: Duration,
    /// The longest answer, in bytes; a longer text is cut.
    pub max_result_bytes: usize,
}

impl HttpOptions {
    /// A tool that GETs an address, with the defaults for all else.
    pub fn get(name: &str, url: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            parameters: None,
            method: Method::GET,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            result: None,
            approval: ApprovalRule::Never,
            timeout: TIMEOUT,
            max_result_bytes: MAX_RESULT,
        }
    }
}

/// What is wrong with the options of a tool: which one, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {problem}")]
pub struct InvalidHttpTool {
    /// The option's name.
    pub option: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// A tool that asks a web service.
pub struct HttpTool {
    spec: ToolSpec,
    options: HttpOptions,
    template: Template,
    /// The arguments that have a place in the address.
    placed: HashSet<String>,
    /// What must not be told to anybody.
    secrets: Vec<String>,
    client: Client,
}

impl HttpTool {
    /// The tool of these options.
    ///
    /// # Errors
    /// [`InvalidHttpTool`], saying what is wrong with which option.
    pub fn new(options: HttpOptions) -> Result<Self, InvalidHttpTool> {
        let invalid = |option| move |problem: String| InvalidHttpTool { option, problem };
        let template = Template::parse(&options.url).map_err(invalid("url"))?;
        let parameters = parameters(&options, &template).map_err(invalid("parameters"))?;
        Validator::new(&parameters).map_err(invalid("parameters"))?;
        let known = [Method::GET, Method::HEAD, Method::DELETE, Method::POST, Method::PUT, Method::PATCH];
        if !known.contains(&options.method) {
            return Err(invalid("method")("expected GET, HEAD, DELETE, POST, PUT or PATCH".to_owned()));
        }
        if let Some(ours) = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, UPGRADE]
            .iter()
            .find(|name| options.headers.contains_key(*name))
        {
            return Err(invalid("headers")(format!("`{ours}` is set by the server itself")));
        }
        if options.result.as_ref().is_some_and(|pointer| !pointer.is_empty() && !pointer.starts_with('/')) {
            return Err(invalid("result")("a JSON Pointer such as \"/current/summary\" begins with a `/`".to_owned()));
        }
        let client = upstream::direct_client(&upstream::ClientOptions::default())
            .map_err(|error| invalid("url")(format!("no client can be made: {error}")))?;
        let placed = template.places().iter().map(|(name, _)| (*name).to_owned()).collect();
        let secrets = options.headers.values().filter(|value| value.is_sensitive());
        let secrets = secrets.filter_map(|value| value.to_str().ok()).flat_map(secret_words).collect();
        let spec = ToolSpec { name: options.name.clone(), description: options.description.clone(), parameters };
        Ok(Self { spec, options, template, placed, secrets, client })
    }

    fn request(&self, arguments: &JsonObject) -> Result<reqwest::RequestBuilder, String> {
        let rest = arguments.iter().filter(|(name, _)| !self.placed.contains(*name));
        let has_body = matches!(self.options.method, Method::POST | Method::PUT | Method::PATCH);
        let (query, body): (Vec<_>, Option<JsonObject>) = if has_body {
            (vec![], Some(rest.map(|(name, value)| (name.clone(), value.clone())).collect()))
        } else {
            // What the configuration has set is not for a model to set again.
            (
                rest.map(|(name, value)| (name.as_str(), value))
                    .filter(|(name, _)| !self.template.sets(name))
                    .collect(),
                None,
            )
        };
        let url = self.template.fill(arguments, &query)?;
        let mut request = self.client.request(self.options.method.clone(), url);
        if !self.options.headers.contains_key(ACCEPT) {
            request = request.header(ACCEPT, "application/json, text/*;q=0.9, */*;q=0.5");
        }
        request = request.headers(self.options.headers.clone());
        Ok(match body {
            Some(body) => request.json(&body),
            None => request,
        })
    }

    async fn ask(&self, arguments: &JsonObject) -> Result<MessageContent, ToolError> {
        let request = self.request(arguments).map_err(ToolError::new)?;
        let answer = request.send().await.map_err(|error| self.failed(error))?;
        answer::read(answer, self.options.result.as_deref(), self.options.max_result_bytes).await
    }

    fn failed(&self, error: reqwest::Error) -> ToolError {
        let host = self.template.host();
        let message = if error.is_connect() {
            format!("{host} cannot be reached.")
        } else if error.is_timeout() {
            format!("{host} does not answer.")
        } else {
            format!("The request to {host} failed.")
        };
        // The address has the arguments in it, which are nothing for a log.
        ToolError::new(message).caused_by(error.without_url())
    }

    /// Takes the secrets out of a text that somebody else has written.
    fn redact(&self, text: &str) -> Option<String> {
        self.secrets
            .iter()
            .any(|secret| text.contains(secret))
            .then(|| self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[redacted]")))
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

    async fn call(&self, arguments: JsonObject, _: &ToolContext) -> Result<MessageContent, ToolError> {
        let Ok(result) = tokio::time::timeout(self.options.timeout, self.ask(&arguments)).await else {
            let (host, seconds) = (self.template.host(), self.options.timeout.as_secs_f32());
            return Err(ToolError::new(format!("{host} did not answer within {seconds} s.")));
        };
        match result {
            Ok(MessageContent::Text(text)) => Ok(self.redact(&text).unwrap_or(text).into()),
            Ok(parts) => Ok(parts),
            Err(error) => Err(match self.redact(error.message()) {
                Some(redacted) => ToolError::new(redacted),
                None => error,
            }),
        }
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

/// The schema as it is offered, which agrees with the places of the address.
fn parameters(options: &HttpOptions, template: &Template) -> Result<Value, String> {
    let Some(schema) = &options.parameters else {
        let properties: JsonObject =
            template.places().iter().map(|(name, _)| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        let required: Vec<_> = template.places().iter().filter(|(_, needed)| *needed).map(|(name, _)| *name).collect();
        return Ok(json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        }));
    };
    let mut schema = schema.as_object().ok_or("a schema of arguments is a table")?.clone();
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some((name, _)) = template.places().iter().find(|(name, _)| !properties.contains_key(*name)) {
        return Err(format!("the address has a place for `{name}`, which `properties` does not describe"));
    }
    let has_body = matches!(options.method, Method::POST | Method::PUT | Method::PATCH);
    let places = template.places();
    let twice = |name: &&String| template.sets(name) && !places.iter().any(|(place, _)| place == name);
    if let Some(name) = properties.keys().find(twice).filter(|_| !has_body) {
        return Err(format!("`{name}` is set by the address already"));
    }
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    // Otherwise a model could add what nobody thought of.
    schema.entry("additionalProperties").or_insert(Value::Bool(false));
    Ok(Value::Object(schema))
}

/// A header's value, and each word of it that is long enough to be a secret: the key behind `Bearer`.
fn secret_words(value: &str) -> Vec<String> {
    let words = value.split_whitespace().filter(|word| word.len() >= 8);
    let mut words: Vec<_> = words.map(ToOwned::to_owned).collect();
    // Longer ones first: one may be a part of another.
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut HttpOptions)) -> String {
        let mut options = HttpOptions::get("weather", "https://api.example.com/{city}?units=metric&lang={lang}");
        change(&mut options);
        HttpTool::new(options).unwrap_err().to_string()
    }

    #[test]
    fn a_schema_is_made_from_the_places_of_the_address() {
        let tool = HttpTool::new(HttpOptions::get("weather", "https://h/{city}?lang={lang}")).unwrap();
        let expected = json!({
            "type": "object",
            "properties": { "city": { "type": "string" }, "lang": { "type": "string" } },
            "required": ["city"],
            "additionalProperties": false
        });
        assert_eq!(tool.spec().parameters, expected);
    }

    #[test]
    fn arguments_that_a_schema_does_not_know_are_refused_unless_it_says_otherwise() {
        let mut options = HttpOptions::get("a", "https://h/");
        options.parameters = Some(json!({ "properties": { "q": {} } }));
        let tool = HttpTool::new(options.clone()).unwrap();
        assert!(Validator::new(&tool.spec().parameters).unwrap().check(r#"{"admin":1}"#).is_err());
        options.parameters = Some(json!({ "additionalProperties": true }));
        let tool = HttpTool::new(options).unwrap();
        assert!(Validator::new(&tool.spec().parameters).unwrap().check(r#"{"admin":1}"#).is_ok());
    }

    #[test]
    fn wrong_options_are_named() {
        for (error, told) in [
            (refused(|options| options.url = "https://{h}/".into()), "url: the host is fixed"),
            (refused(|options| options.method = Method::TRACE), "method: expected GET"),
            (refused(|options| options.result = Some("a/b".into())), "result: a JSON Pointer"),
            (refused(|options| drop(options.headers.insert(HOST, "evil".parse().unwrap()))), "headers: `host`"),
            (refused(|options| options.parameters = Some(json!([]))), "parameters: a schema"),
            (refused(|options| options.parameters = Some(json!({ "type": "array" }))), "parameters: "),
            (
                refused(|options| options.parameters = Some(json!({ "properties": { "city": {} } }))),
                "parameters: the address has a place for `lang`",
            ),
            (
                refused(|options| {
                    let properties = json!({ "city": {}, "lang": {}, "units": {} });
                    options.parameters = Some(json!({ "properties": properties }));
                }),
                "parameters: `units` is set by the address",
            ),
        ] {
            assert!(error.starts_with(told), "{error}");
        }
    }
}
