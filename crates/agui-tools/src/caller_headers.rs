//! Headers that name the caller (`headers_from`): their values come from the run's caller, and
//! never from a model.
//!
//! A missing value leaves its header out, or refuses the call if it is `required`. An invalid value
//! always refuses the call: it could otherwise arrive as another value.

use std::fmt;

use indexmap::IndexMap;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use crate::{context::ToolContext, error::ToolError, options::HeaderSource};
use agui_base::InvalidOption;
use agui_base::upstream::secret_names::is_secret_header;

/// A header whose value comes from the caller of a run: `"principal"`, or `{ from = "principal", required = true }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ConfiguredHeader")]
#[non_exhaustive]
pub struct CallerHeader {
    /// The source of the value.
    pub from: CallerValue,
    /// Refuses calls of runs that do not have the value. Otherwise the header is left out.
    pub required: bool,
}

/// A value that the server knows about the caller of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerValue {
    /// `principal`: the name of the API key, or the subject of the token.
    Principal,
    /// `principal_id`: the principal with its source, as threads are stored under it, such as `key:ada`.
    PrincipalId,
    /// `claim:NAME`: a claim of the token. A list is sent with commas; an object counts as missing.
    Claim(String),
    /// `header:NAME`: a header of the caller's request, in lower case.
    Header(String),
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a source such as \"principal\", or { from = \"principal\", required = true }"
)]
enum ConfiguredHeader {
    Text(#[cfg_attr(feature = "schema", schemars(regex(pattern = SOURCE)))] String),
    Table {
        /// `principal`: the name of the API key, or the subject of the token. `principal_id`: the same with its source,
        /// such as `key:ada`. `claim:NAME`: a claim of the token. `header:NAME`: a header of the client's request.
        #[cfg_attr(feature = "schema", schemars(regex(pattern = SOURCE)))]
        from: String,
        /// True refuses calls of runs that do not have the value. Otherwise the header is left out.
        #[serde(default)]
        required: bool,
    },
}

/// The sources that [`CallerValue::parse`] accepts, for the JSON Schema.
#[cfg(feature = "schema")]
const SOURCE: &str = r"^(principal|principal_id|claim:[\s\S]+|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$";

/// The form in a configuration.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for CallerHeader {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CallerHeader".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<ConfiguredHeader>()
    }
}

impl TryFrom<ConfiguredHeader> for CallerHeader {
    type Error = String;

    fn try_from(configured: ConfiguredHeader) -> Result<Self, String> {
        let (from, required) = match configured {
            ConfiguredHeader::Text(from) => (from, false),
            ConfiguredHeader::Table { from, required } => (from, required),
        };
        Ok(Self { from: CallerValue::parse(&from)?, required })
    }
}

impl CallerValue {
    /// Parses `principal`, `principal_id`, `claim:NAME` or `header:NAME`.
    ///
    /// # Errors
    /// The text has another form; the message names it and the valid forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "principal" => Ok(Self::Principal),
            None if text == "principal_id" => Ok(Self::PrincipalId),
            Some(("claim", name)) if !name.is_empty() => Ok(Self::Claim(name.to_owned())),
            Some(("header", name)) if HeaderName::from_bytes(name.as_bytes()).is_ok() => {
                Ok(Self::Header(name.to_ascii_lowercase()))
            }
            _ => Err(format!(
                "{text:?} is no source: expected \"principal\", \"principal_id\", \"claim:NAME\" or \"header:NAME\""
            )),
        }
    }

    /// Returns the value of a call's run, as the bytes of a header.
    fn run_value(&self, cx: &ToolContext) -> Option<String> {
        match self {
            Self::Principal => cx.principal().map(|principal| principal.name().to_owned()),
            Self::PrincipalId => cx.principal().map(|principal| principal.id().to_owned()),
            Self::Claim(name) => claim_text(cx.principal()?.claim(name)?),
            Self::Header(name) => {
                let values: Vec<&str> = cx.header_values(name).collect();
                (!values.is_empty()).then(|| values.join(", "))
            }
        }
        .filter(|value| !value.is_empty())
    }
}

impl fmt::Display for CallerValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal | Self::PrincipalId => f.write_str("authenticated user"),
            Self::Claim(name) => write!(f, "claim {name:?} of a token"),
            Self::Header(name) => write!(f, "header {name:?}"),
        }
    }
}

/// The headers of one tool or MCP server.
#[derive(Debug, Clone, Default)]
pub struct CallerHeaders(Vec<(HeaderName, CallerHeader)>);

impl CallerHeaders {
    /// Checks the names of the headers. `fixed` are the headers with values of the configuration,
    /// which must have other names.
    pub fn new(
        headers: &IndexMap<String, CallerHeader>,
        fixed: &IndexMap<String, HeaderSource>,
        is_reserved: impl Fn(&HeaderName) -> bool,
    ) -> Result<Self, InvalidOption> {
        let invalid = |problem: String| Err(InvalidOption::new("headers_from", problem));
        let mut names: Vec<(HeaderName, CallerHeader)> = Vec::new();
        for (text, header) in headers {
            let Ok(name) = HeaderName::from_bytes(text.as_bytes()) else {
                return invalid(format!("{text:?} is not a valid header name"));
            };
            if is_reserved(&name) {
                return invalid(format!("`{name}` is set by the server itself"));
            }
            let is_fixed = fixed.keys().any(|fixed| fixed.eq_ignore_ascii_case(name.as_str()));
            if is_fixed || names.iter().any(|(other, _)| *other == name) {
                return invalid(format!("`{name}` is set twice"));
            }
            names.push((name, header.clone()));
        }
        Ok(Self(names))
    }

    /// Returns the headers for a call.
    pub fn for_call(&self, cx: &ToolContext) -> Result<HeaderMap, ToolError> {
        let mut headers = HeaderMap::with_capacity(self.0.len());
        for (name, CallerHeader { from, required }) in &self.0 {
            let Some(text) = from.run_value(cx) else {
                if *required {
                    return Err(ToolError::new(format!(
                        "the tool was not called: the request has no {from}"
                    )));
                }
                continue;
            };
            let mut value = header_value(&text).ok_or_else(|| {
                ToolError::new(format!(
                    "the tool was not called: the {from} has characters that a header cannot have"
                ))
            })?;
            let is_secret_source =
                matches!(from, CallerValue::Header(from) if is_secret_header(from));
            value.set_sensitive(is_secret_header(name.as_str()) || is_secret_source);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }
}

/// Returns `None` for line ends and other control characters, and for white space at the ends:
/// receivers remove it, so that two different principals would look the same.
fn header_value(text: &str) -> Option<HeaderValue> {
    let is_exact = text.trim() == text && !text.contains(char::is_control);
    is_exact.then(|| HeaderValue::from_bytes(text.as_bytes()).ok()).flatten()
}

fn claim_text(claim: &Value) -> Option<String> {
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        _ => None,
    };
    match claim {
        Value::Array(items) => {
            let texts: Vec<_> = items.iter().map(scalar).collect::<Option<_>>()?;
            // An item with a comma would look like two items.
            (!texts.iter().any(|text| text.contains(','))).then(|| texts.join(","))
        }
        other => scalar(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use agui_agent::{Principal, RunContext};

    fn read(text: &str) -> IndexMap<String, CallerHeader> {
        toml::from_str(text).unwrap()
    }

    fn context(principal: Option<Principal>, headers: &[(&str, &str)]) -> ToolContext {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ToolContext::new(
            RunContext::new("t", "r", "a").with_caller(principal, headers),
            json!({}),
            "c",
            "t",
        )
    }

    fn for_call(options: &str, cx: &ToolContext) -> Result<Vec<(String, Vec<u8>)>, String> {
        let headers = CallerHeaders::new(&read(options), &IndexMap::new(), |_| false).unwrap();
        let headers = headers.for_call(cx).map_err(|error| error.message().to_owned())?;
        let pairs =
            headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
        Ok(pairs.collect())
    }

    #[test]
    fn values_come_from_the_principal_its_claims_and_the_request() {
        let claims = json!({ "tenant": "acme", "level": 3, "roles": ["a", "b"], "odd": ["a,b"], "address": {}, "no": "" });
        let ada =
            Principal::new("jwt:id", "ada é").with_claims(claims.as_object().unwrap().clone());
        let cx = context(Some(ada), &[("x-trace", "1"), ("x-trace", "2")]);
        let pairs = for_call(
            "A = \"principal\"\nB = \"principal_id\"\nC = \"claim:tenant\"\nD = \"claim:level\"\nE = \"claim:roles\"\n\
             F = \"header:X-Trace\"\nG = \"claim:odd\"\nH = \"claim:address\"\nI = \"claim:no\"\nJ = \"header:x-other\"",
            &cx,
        );
        let expected = [
            ("a", "ada é"),
            ("b", "jwt:id:ada é"),
            ("c", "acme"),
            ("d", "3"),
            ("e", "a,b"),
            ("f", "1, 2"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        assert_eq!(pairs.unwrap(), expected);
    }

    #[test]
    fn a_missing_value_leaves_the_header_out_or_refuses_the_call() {
        let cx = context(None, &[]);
        assert_eq!(for_call("A = \"principal\"", &cx), Ok(vec![]));
        for (source, missing) in [
            ("principal", "authenticated user"),
            ("claim:tenant", "claim \"tenant\" of a token"),
            ("header:x-trace", "header \"x-trace\""),
        ] {
            let error = for_call(&format!("A = {{ from = \"{source}\", required = true }}"), &cx)
                .unwrap_err();
            assert_eq!(error, format!("the tool was not called: the request has no {missing}"));
        }
    }

    #[test]
    fn a_value_that_a_header_cannot_have_refuses_the_call() {
        for name in ["ada\r\nX-Admin: 1", " ada", "ada\t", "a\u{85}b", "a\0"] {
            let claims = json!({ "c": name }).as_object().unwrap().clone();
            let cx = context(Some(Principal::new("key", "x").with_claims(claims)), &[]);
            let error = for_call("A = \"claim:c\"", &cx).unwrap_err();
            assert!(error.contains("cannot have"), "{name:?}: {error}");
        }
    }

    #[test]
    fn wrong_options_are_named() {
        let fixed = IndexMap::from([("X-App".to_owned(), HeaderSource::from("a"))]);
        for (text, expected) in [
            ("\"a b\" = \"principal\"", "headers_from: \"a b\" is not a valid header name"),
            ("x-app = \"principal\"", "headers_from: `x-app` is set twice"),
            ("A = \"principal\"\na = \"principal\"", "headers_from: `a` is set twice"),
            ("Host = \"principal\"", "headers_from: `host` is set by the server itself"),
        ] {
            let error = CallerHeaders::new(&read(text), &fixed, |name| name == "host").unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        for text in [
            "A = \"principle\"",
            "A = \"claim:\"",
            "A = \"header:a b\"",
            "A = { from = \"env:X\" }",
        ] {
            let error = toml::from_str::<IndexMap<String, CallerHeader>>(text).unwrap_err();
            assert!(
                error.message().contains("is no source: expected \"principal\""),
                "{text}: {error}"
            );
        }
        let error = toml::from_str::<IndexMap<String, CallerHeader>>("A = 1").unwrap_err();
        assert!(error.message().starts_with("expected a source such as"), "{error}");
    }

    #[test]
    fn credentials_are_marked_as_secret() {
        let cx = context(None, &[("authorization", "Bearer abcdefgh"), ("x-trace", "1")]);
        let headers = read(
            "X-User-Token = \"header:x-trace\"\nX-A = \"header:authorization\"\nX-B = \"header:x-trace\"",
        );
        let headers = CallerHeaders::new(&headers, &IndexMap::new(), |_| false)
            .unwrap()
            .for_call(&cx)
            .unwrap();
        assert!(headers["x-user-token"].is_sensitive() && headers["x-a"].is_sensitive());
        assert!(!headers["x-b"].is_sensitive());
    }
}
