//! URLs with places for arguments. An argument cannot change anything outside its place.
//!
//! In `https://api.example.com/v1/cities/{city}/weather?units=metric&lang={lang}`, scheme, host and port are fixed; a
//! place is part of a path segment or of the value of a query pair. All characters of an argument but RFC 3986's
//! unreserved ones (letters, digits and `-_~.`) are percent-encoded, so it cannot end a segment or a pair. Because
//! some servers decode more than once, and others cut `;` and what follows it from a segment, a path argument is refused if
//! it is empty or has a segment `.` or `..` in any of these readings.

use std::slice;

use reqwest::Url;
use serde_json::Value;

use agui_base::text::path_segment;
use agui_protocol::JsonObject;

const MAX_URL_BYTES: usize = 16 * 1024;
/// Arguments that are still encoded after this number of decodings are refused.
const MAX_DECODINGS: usize = 4;

#[derive(Debug)]
pub(super) struct UrlTemplate {
    origin: Url,
    segments: Vec<Vec<UrlPiece>>,
    /// The query's pairs. A pair without a value has no `=`.
    query: Vec<(String, Option<Vec<UrlPiece>>)>,
}

#[derive(Debug, PartialEq)]
enum UrlPiece {
    Fixed(String),
    Place(String),
}

impl UrlTemplate {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
        let (scheme, rest) = parts.ok_or("a URL begins with http:// or https://")?;
        if text.contains(['#', '\\']) || text.contains(|c: char| c.is_control() || c == ' ') {
            return Err("a URL has no spaces, no backslashes and no `#`".to_owned());
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains(['{', '}']) {
            return Err(
                "the host is fixed: use places in the path and in the query only".to_owned()
            );
        }
        if authority.contains('@') {
            return Err(
                "a URL cannot have credentials: use `headers`, with the secret in an environment variable".to_owned()
            );
        }
        let origin =
            Url::parse(&format!("{scheme}://{authority}/")).map_err(|error| error.to_string())?;
        let (path, query) =
            rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let segments = path
            .strip_prefix('/')
            .unwrap_or_default()
            .split('/')
            .map(split_places)
            .collect::<Result<Vec<_>, _>>()?;
        let pairs =
            query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| {
            let (name, value) =
                pair.split_once('=').map_or((pair, None), |(name, value)| (name, Some(value)));
            if name.contains(['{', '}']) {
                return Err(format!("the name of a query parameter is fixed, unlike `{name}`"));
            }
            Ok((name.to_owned(), value.map(split_places).transpose()?))
        });
        let template = Self { origin, segments, query: query.collect::<Result<_, _>>()? };
        // The fixed parts must be a valid URL.
        let example = |piece: &UrlPiece| match piece {
            UrlPiece::Fixed(text) => text.clone(),
            UrlPiece::Place(_) => "x".to_owned(),
        };
        template.join(
            template.segments.iter().map(|pieces| pieces.iter().map(example).collect()).collect(),
            &[],
        )?;
        Ok(template)
    }

    pub(super) fn host(&self) -> &str {
        self.origin.host_str().unwrap_or_default()
    }

    /// Returns the host, with its port unless it is the default of the scheme.
    pub(super) fn authority(&self) -> String {
        self.origin.authority().to_owned()
    }

    /// Returns the arguments that have a place, and whether each is required.
    pub(super) fn places(&self) -> Vec<(&str, bool)> {
        let path = self.segments.iter().flatten().map(|piece| (piece, true));
        let query = self
            .query
            .iter()
            .filter_map(|(_, value)| value.as_ref())
            .flatten()
            .map(|piece| (piece, false));
        let places = path.chain(query).filter_map(|(piece, needed)| match piece {
            UrlPiece::Place(name) => Some((name.as_str(), needed)),
            UrlPiece::Fixed(_) => None,
        });
        places.collect()
    }

    pub(super) fn sets(&self, parameter: &str) -> bool {
        self.query.iter().any(|(name, _)| name == parameter)
    }

    pub(super) fn fill(
        &self,
        arguments: &JsonObject,
        in_query: &[(&String, &Value)],
    ) -> Result<Url, String> {
        let segments = self
            .segments
            .iter()
            .map(|pieces| fill_segment(pieces, arguments))
            .collect::<Result<Vec<_>, _>>()?;
        let mut pairs: Vec<String> = Vec::new();
        for (name, value) in &self.query {
            match value.as_deref() {
                None => pairs.push(name.clone()),
                Some([UrlPiece::Place(argument)]) => {
                    push_pairs(&mut pairs, name, argument, arguments.get(argument))?;
                }
                Some(pieces) => pairs
                    .extend(fill_value(pieces, arguments)?.map(|value| format!("{name}={value}"))),
            }
        }
        for (argument, value) in in_query {
            push_pairs(&mut pairs, &path_segment(argument), argument, Some(value))?;
        }
        self.join(segments, &pairs)
    }

    /// Joins the parts, and checks that parsing them gives the same parts again.
    fn join(&self, segments: Vec<String>, pairs: &[String]) -> Result<Url, String> {
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        let text = format!("{}{}{query}", self.origin, segments.join("/"));
        if text.len() > MAX_URL_BYTES {
            return Err("The arguments are too long for a URL.".to_owned());
        }
        let url = Url::parse(&text)
            .map_err(|error| format!("The arguments do not give a valid URL: {error}."))?;
        let is_same = url.origin() == self.origin.origin()
            && url.path_segments().is_some_and(|found| found.count() == segments.len())
            && url.query().unwrap_or_default().matches('&').count()
                == pairs.len().saturating_sub(1)
            && url.fragment().is_none()
            && url.username().is_empty();
        if is_same {
            Ok(url)
        } else {
            Err("The arguments give another URL than this tool's.".to_owned())
        }
    }
}

fn split_places(text: &str) -> Result<Vec<UrlPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((fixed, behind)) = rest.split_once('{') {
        let (name, after) =
            behind.split_once('}').ok_or_else(|| format!("`{{{behind}` has no `}}`"))?;
        if name.is_empty() || name.contains(['{', '/', '&', '=']) {
            return Err(format!("`{{{name}}}` names no argument"));
        }
        if !fixed.is_empty() {
            pieces.push(UrlPiece::Fixed(fixed.to_owned()));
        }
        pieces.push(UrlPiece::Place(name.to_owned()));
        rest = after;
    }
    if text.matches('}').count() != text.matches('{').count() {
        return Err("a `}` has no `{`".to_owned());
    }
    if !rest.is_empty() {
        pieces.push(UrlPiece::Fixed(rest.to_owned()));
    }
    Ok(pieces)
}

fn fill_segment(pieces: &[UrlPiece], arguments: &JsonObject) -> Result<String, String> {
    let mut plain = String::new();
    let mut encoded = String::new();
    let mut has_place = false;
    for piece in pieces {
        match piece {
            UrlPiece::Fixed(text) => {
                plain.push_str(text);
                encoded.push_str(text);
            }
            UrlPiece::Place(name) => {
                let value = arguments.get(name).filter(|value| !value.is_null());
                let value = value.ok_or_else(|| format!("The argument `{name}` is required."))?;
                let text = texts(name, value)?.join(",");
                encoded.push_str(&path_segment(&text));
                plain.push_str(&text);
                has_place = true;
            }
        }
    }
    if has_place && (plain.trim().is_empty() || has_dot_segment(plain)) {
        return Err("An argument in the path cannot be empty, `.` or `..`.".to_owned());
    }
    Ok(encoded)
}

/// Returns whether a server could find a segment `.` or `..` in a text. Servers may decode before they split the path, and
/// several times, and some cut a segment at `;` or at a control character.
fn has_dot_segment(mut text: String) -> bool {
    for _ in 0..=MAX_DECODINGS {
        let ends_segment = |c: char| matches!(c, ';' | ' ') || c.is_control();
        let segments =
            text.split(['/', '\\']).map(|segment| segment.trim_start_matches(ends_segment));
        let mut names =
            segments.map(|segment| segment.split(ends_segment).next().unwrap_or_default());
        if names.any(|name| matches!(name, "." | "..")) {
            return true;
        }
        let decoded = percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            return false;
        }
        text = decoded;
    }
    // There is no good reason for so many encodings.
    true
}

fn fill_value(pieces: &[UrlPiece], arguments: &JsonObject) -> Result<Option<String>, String> {
    let mut encoded = String::new();
    for piece in pieces {
        match piece {
            UrlPiece::Fixed(text) => encoded.push_str(text),
            UrlPiece::Place(name) => match arguments.get(name) {
                None | Some(Value::Null) => return Ok(None),
                Some(value) => encoded.push_str(&path_segment(&texts(name, value)?.join(","))),
            },
        }
    }
    Ok(Some(encoded))
}

fn push_pairs(
    pairs: &mut Vec<String>,
    name: &str,
    argument: &str,
    value: Option<&Value>,
) -> Result<(), String> {
    let texts = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(object @ Value::Object(_)) => vec![object.to_string()],
        Some(value) => texts(argument, value)?,
    };
    pairs.extend(texts.iter().map(|text| format!("{name}={}", path_segment(text))));
    Ok(())
}

/// Returns the text of a value, or the texts of a list.
fn texts(argument: &str, value: &Value) -> Result<Vec<String>, String> {
    let values = value.as_array().map_or(slice::from_ref(value), Vec::as_slice);
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        _ => {
            Err(format!("The argument `{argument}` must be a string, a number or a boolean here."))
        }
    };
    values.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fill(template: &str, arguments: Value) -> Result<String, String> {
        let template = UrlTemplate::parse(template).unwrap();
        template.fill(arguments.as_object().unwrap(), &[]).map(|url| url.to_string())
    }

    #[test]
    fn arguments_are_encoded_in_their_places() {
        for (template, arguments, url) in [
            (
                "https://h/w?city={c}",
                json!({ "c": "São Paulo" }),
                "https://h/w?city=S%C3%A3o%20Paulo",
            ),
            (
                "https://h/w?city={c}",
                json!({ "c": "x&admin=1#y" }),
                "https://h/w?city=x%26admin%3D1%23y",
            ),
            (
                "https://h/w?city={c}",
                json!({ "c": "a\r\nHost: b" }),
                "https://h/w?city=a%0D%0AHost%3A%20b",
            ),
            ("https://h/{c}/w", json!({ "c": "a/b?c" }), "https://h/a%2Fb%3Fc/w"),
            ("https://h/{c}", json!({ "c": "@evil.com" }), "https://h/%40evil.com"),
            ("https://h/{c}", json!({ "c": "//evil.com" }), "https://h/%2F%2Fevil.com"),
            ("https://h:81/v{n}.{m}", json!({ "n": 1, "m": 2 }), "https://h:81/v1.2"),
            ("https://h?a={a}&b=1&c={c}", json!({ "a": null }), "https://h/?b=1"),
            ("https://h?a={a}", json!({}), "https://h/"),
            ("https://h?a={a}", json!({ "a": ["x", 1, true] }), "https://h/?a=x&a=1&a=true"),
            ("https://h?a={a}", json!({ "a": [] }), "https://h/"),
            ("https://h?a={a}", json!({ "a": { "b": 1 } }), "https://h/?a=%7B%22b%22%3A1%7D"),
            ("https://h?p={a},{b}&flag", json!({ "a": 1, "b": 2 }), "https://h/?p=1,2&flag"),
            ("https://h?p={a},{b}", json!({ "a": 1 }), "https://h/"),
            ("https://h/{a}/x", json!({ "a": ["x", "y"] }), "https://h/x%2Cy/x"),
            ("http://[::1]:8/{a}", json!({ "a": "..." }), "http://[::1]:8/..."),
        ] {
            assert_eq!(fill(template, arguments.clone()).unwrap(), url, "{template} {arguments}");
        }
    }

    #[test]
    fn path_arguments_with_dot_segments_are_refused() {
        for value in [
            "..",
            ".",
            "",
            " ",
            "../../admin",
            "a/../b",
            "..\\x",
            "%2e%2e",
            "%2E%2e%2Fadmin",
            "x/..",
            "..;",
            "..;/admin",
            "..;x=1/admin",
            ".;",
            "a/..;b/c",
            "..%2f",
            "..%5cadmin",
            "%2e%2e;x",
            "..%3b/admin",
            ".%2e",
            "%252e%252e",
            "%25252e%25252e%25252f",
            "%25252525252e",
            "..\0",
            "..%00/admin",
            "..\t",
            ".. ",
            " ..",
        ] {
            assert!(fill("https://h/a/{c}/b", json!({ "c": value })).is_err(), "{value}");
        }
        for value in ["...", "a..b", "..a", "x;y", "1.5", "100%", "50%25", ".env", "a b", "c; d. e"]
        {
            assert!(fill("https://h/a/{c}/b", json!({ "c": value })).is_ok(), "{value}");
        }
        assert!(fill("https://h/a/{c}{d}/b", json!({ "c": ".", "d": "." })).is_err());
        assert!(fill("https://h/a/.{c}/b", json!({ "c": "." })).is_err());
        assert!(fill("https://h/a/{c}", json!({})).unwrap_err().contains("`c` is required"));
        assert!(fill("https://h/a/{c}", json!({ "c": { "d": 1 } })).is_err());
        assert!(
            fill("https://h/a/{c}", json!({ "c": "x".repeat(MAX_URL_BYTES) }))
                .unwrap_err()
                .contains("too long")
        );
    }

    #[test]
    fn invalid_templates_are_refused_with_the_reason() {
        for (template, expected) in [
            ("ftp://h/", "http:// or https://"),
            ("{scheme}://h/", "http:// or https://"),
            ("/w?city={c}", "http:// or https://"),
            ("https://{host}/", "the host is fixed"),
            ("https://api.{region}.example.com/x", "the host is fixed"),
            ("https://h:{port}/", "the host is fixed"),
            ("https://user:pass@h/", "cannot have credentials"),
            ("https://h/?{name}=1", "is fixed"),
            ("https://h/{a", "has no `}`"),
            ("https://h/a}", "has no `{`"),
            ("https://h/{}", "names no argument"),
            ("https://h/a#b", "no `#`"),
            ("https://h/a b", "no spaces"),
            ("https://", "empty host"),
            ("https://h/a/../b", "another URL"),
        ] {
            let error = UrlTemplate::parse(template).unwrap_err();
            assert!(error.contains(expected), "{template}: {error}");
        }
    }

    proptest! {
        #[test]
        fn an_argument_changes_only_its_place(path in any::<String>(), value in any::<String>()) {
            let template = UrlTemplate::parse("https://h:8443/a/{p}/b?x=1&q={q}").unwrap();
            let arguments = json!({ "p": path, "q": value });
            if let Ok(url) = template.fill(arguments.as_object().unwrap(), &[]) {
                prop_assert!(url.as_str().starts_with("https://h:8443/a/"));
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!((segments.len(), segments[0], segments[2]), (3, "a", "b"));
                let pairs: Vec<_> = url.query_pairs().collect();
                prop_assert_eq!(pairs, [("x".into(), "1".into()), ("q".into(), value.into())]);
            }
        }
    }
}
