//! Templates of URLs: arguments change their places and nothing else. The first line is the template, the rest the
//! arguments as JSON.
#![no_main]

use agui_tools::http::testing::fill;
use agui_server_fuzz::bounded;
use libfuzzer_sys::fuzz_target;
use reqwest::Url;
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (template, arguments) = text.split_once('\n').unwrap_or((text, "{}"));
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else { return };
    let Ok(Ok(url)) = bounded(data.len(), || fill(template, &arguments)) else { return };
    assert_eq!(Url::parse(url.as_str()).as_ref(), Ok(&url), "the URL is the same after writing and parsing");

    // The same template with harmless arguments.
    let plain = arguments.keys().map(|name| (name.clone(), json!("x"))).collect();
    let plain = fill(template, &plain).expect("a valid template").expect("harmless arguments");
    let target =
        |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port(), url.fragment().is_some());
    assert_eq!(target(&url), target(&plain), "arguments changed the target of {template}");
    assert!(url.username().is_empty() && url.password().is_none());
    let authority = template.split("://").nth(1).unwrap_or_default().split(['/', '?']).next().unwrap_or_default();
    let fixed = Url::parse(&format!("http://{authority}/")).expect("a host");
    assert_eq!(url.host(), fixed.host());

    let segments = |url: &Url| url.path_segments().map(|segments| segments.map(str::to_owned).collect::<Vec<_>>());
    let (segments, plain_segments) = (segments(&url).unwrap_or_default(), segments(&plain).unwrap_or_default());
    assert_eq!(segments.len(), plain_segments.len(), "{url}");
    let path = template.split("://").nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
    for ((segment, plain), written) in segments.iter().zip(&plain_segments).zip(path.split('/').skip(1)) {
        if !written.contains('{') {
            assert_eq!(segment, plain, "a fixed segment of {url}");
        }
        assert!(!matches!(segment.as_str(), "." | ".."), "{url}");
    }
    // Each name in the query comes from the template or from an argument.
    let in_template = template.split_once('?').map_or("", |(_, query)| query);
    let in_template = in_template.split('&').map(|pair| pair.split('=').next().unwrap_or_default().to_owned());
    let names: Vec<String> = in_template.chain(arguments.keys().cloned()).collect();
    let decoded = Url::parse(&format!("http://h/?{}", names[..].join("&"))).expect("a URL");
    let decoded: Vec<String> = decoded.query_pairs().map(|(name, _)| name.into_owned()).collect();
    for (name, _) in url.query_pairs() {
        assert!(
            names.contains(&name.clone().into_owned()) || decoded.contains(&name.clone().into_owned()),
            "{name} in {url}"
        );
    }
});
