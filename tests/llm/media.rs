//! Media that providers refuse, at each of the four APIs: the run that brings one and every later run of its thread succeed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::misbehaving::{APIS, code, next, play, text};
use crate::support::{
    provider::Recorded,
    running::{Running, input},
    strict,
};

/// The largest image, in bytes: Anthropic's. <https://docs.anthropic.com/en/docs/build-with-claude/vision>
const MAX_IMAGE_BYTES: usize = 5 << 20;

/// A PNG of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Refuses what the four APIs refuse of images, beside what they refuse of everything else: data that is not base64, is empty,
/// is not of the declared type, or is cut, and images that are too large.
fn refusal(request: &Recorded) -> Option<String> {
    strict::refusal(request).or_else(|| images(&request.body).into_iter().find_map(|(kind, data)| fault(&kind, &data)))
}

fn fault(kind: &str, data: &str) -> Option<String> {
    let Ok(bytes) = STANDARD.decode(data) else { return Some("image.source.base64: invalid base64 data".to_owned()) };
    let is_kind = match kind {
        "image/png" => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => bytes.starts_with(b"\xff\xd8\xff"),
        _ => false,
    };
    if bytes.len() > MAX_IMAGE_BYTES {
        return Some(format!("image exceeds 5 MB maximum: {} bytes > {MAX_IMAGE_BYTES} bytes", bytes.len()));
    }
    if !is_kind {
        return Some(format!(
            "The image was specified using the {kind} media type, but the image appears to be another"
        ));
    }
    (!bytes.ends_with(b"IEND\xae\x42\x60\x82") && kind == "image/png").then(|| "Could not process image".to_owned())
}

/// Returns the types and the data of the images anywhere in a request.
fn images(value: &Value) -> Vec<(String, String)> {
    let of_member = |kind: &str, data: &str| {
        let (kind, data) = (value[kind].as_str()?, value[data].as_str()?);
        Some((kind.to_owned(), data.to_owned()))
    };
    let of_url = |url: Option<&str>| {
        let (kind, data) = url?.strip_prefix("data:")?.split_once(";base64,")?;
        Some((kind.to_owned(), data.to_owned()))
    };
    let own = of_member("media_type", "data")
        .or_else(|| of_member("mimeType", "data"))
        .or_else(|| of_url(value["image_url"]["url"].as_str()))
        .or_else(|| of_url(value["image_url"].as_str()));
    let inner: Vec<_> = match value {
        Value::Array(values) => values.iter().flat_map(images).collect(),
        Value::Object(members) => members.values().flat_map(images).collect(),
        _ => Vec::new(),
    };
    own.into_iter().chain(inner).collect()
}

fn with_image(kind: &str, data: &str) -> Value {
    let mut input = input("look");
    let image = json!({"type": "image", "source": {"type": "data", "value": data, "mimeType": kind}});
    input["messages"][0]["content"] = json!([{"type": "text", "text": "What is this?"}, image]);
    input
}

/// Returns the reasons for which attachments were skipped.
fn skipped(events: &[Value]) -> Vec<String> {
    let skipped = events.iter().filter(|event| event["name"] == "agui-server.attachment_skipped");
    skipped.map(|event| event["value"]["reason"].as_str().unwrap().to_owned()).collect()
}

/// Sends an image and then a plain message on the same thread. Returns why the image was skipped, and how many requests the
/// provider got for each of the two.
async fn look(api: &super::misbehaving::Api, kind: &str, data: &str) -> (Vec<String>, [usize; 2]) {
    let (server, provider): (Running, _) = api.serve_checked(refusal, |agent| agent).await;
    let shown = format!("{}: {kind} {data:.20}", api.name);
    let first = with_image(kind, data);
    provider.answer(api.says("I see."));
    let run = play(&server, &first).await;
    assert_eq!((text(&run).as_str(), code(&run)), ("I see.", None), "{shown}: {run:?}");
    let asked = provider.requests().len();
    provider.answer(api.says("Gladly."));
    let later = play(&server, &next(&first, "r2", "thanks")).await;
    assert_eq!((text(&later).as_str(), code(&later)), ("Gladly.", None), "{shown}: {later:?}");
    assert_eq!(skipped(&later), [""; 0], "{shown}: it was told once");
    (skipped(&run), [asked, provider.requests().len() - asked])
}

#[tokio::test]
async fn an_image_is_sent_as_what_it_is_however_it_is_declared_and_written() {
    let with_line_ends = format!("{}\n{}", &PNG[..40], &PNG[40..]);
    let url = format!("data:image/jpeg;base64,{PNG}");
    for api in APIS {
        for data in [PNG, &with_line_ends, &url, PNG.trim_end_matches('='), &PNG.replace('+', "-").replace('/', "_")] {
            assert_eq!(look(api, "image/jpeg", data).await, (Vec::new(), [1, 1]), "{}: {data}", api.name);
        }
    }
}

#[tokio::test]
async fn an_image_that_a_provider_refuses_is_left_out_and_its_thread_goes_on() {
    let cut = &PNG[..64];
    let large =
        STANDARD.encode([b"\x89PNG\r\n\x1a\n".as_slice(), &vec![0; MAX_IMAGE_BYTES], b"IEND\xae\x42\x60\x82"].concat());
    for api in APIS {
        for (kind, data) in
            [("image/png", cut), ("image/png", &large), ("image/png", "AAAAAAAA"), ("image/jpeg", "bm90IGFuIGltYWdl")]
        {
            let (reasons, requests) = look(api, kind, data).await;
            let [reason] = &reasons[..] else { panic!("{}: {reasons:?}", api.name) };
            assert!(reason.starts_with("the provider refused it: "), "{}: {reason}", api.name);
            assert_eq!(requests, [2, 1], "{}: asked again once, and not with the next message", api.name);
        }
    }
}

#[tokio::test]
async fn data_that_is_none_is_not_sent() {
    for api in APIS {
        for data in ["", "???", "iVBORw0KGgoAA"] {
            let (reasons, requests) = look(api, "image/png", data).await;
            assert_eq!((reasons.len(), requests), (1, [1, 1]), "{}: {data:?} {reasons:?}", api.name);
        }
    }
}
