//! Media that providers refuse, at each of the four APIs: the run that brings one and every later run of its thread succeed.

use std::io::Cursor;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use image::{ImageFormat, ImageReader, Rgb, RgbImage};
use serde_json::{Value, json};

use super::misbehaving::{APIS, code, next, play, text};
use crate::support::{
    provider::Recorded,
    running::{Running, input},
    strict,
};

/// The largest image of Anthropic, in characters of base64:
/// <https://github.com/lobehub/lobehub/pull/14711>. The others refuse more than 6 million here.
const MAX_IMAGE_CHARS: usize = 5 << 20;
/// The longest side: <https://github.com/anthropics/claude-code/issues/4778>.
const MAX_SIDE: u32 = 8000;
/// "Too much media": <https://github.com/anthropics/claude-code/issues/3397>.
const MAX_IMAGES: usize = 100;

/// A PNG of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Refuses invalid images like the four APIs, beside their other refusals: data that is empty, cut,
/// not base64 or not of the declared type, and images that are too large.
pub(super) fn refusal(request: &Recorded) -> Option<String> {
    let images = images(&request.body);
    let is_anthropic = request.path.ends_with("/messages");
    let too_many = is_anthropic && images.len() > MAX_IMAGES;
    let too_many = too_many.then(|| {
        format!("Too much media: 0 document pages + {} images > {MAX_IMAGES}", images.len())
    });
    let fault = || images.iter().find_map(|(kind, data)| fault(kind, data, is_anthropic));
    strict::refusal(request).or(too_many).or_else(fault)
}

fn fault(kind: &str, data: &str, is_anthropic: bool) -> Option<String> {
    let Ok(bytes) = STANDARD.decode(data) else {
        return Some("image.source.base64: invalid base64 data".to_owned());
    };
    let is_kind = match kind {
        "image/png" => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => bytes.starts_with(b"\xff\xd8\xff"),
        _ => false,
    };
    let max_chars = if is_anthropic { MAX_IMAGE_CHARS } else { 6_000_000 };
    if data.len() > max_chars {
        return Some(format!(
            "image exceeds 5 MB maximum: {} bytes > {max_chars} bytes",
            data.len()
        ));
    }
    let size =
        ImageReader::new(Cursor::new(&bytes)).with_guessed_format().unwrap().into_dimensions();
    if is_anthropic && size.is_ok_and(|(width, height)| width.max(height) > MAX_SIDE) {
        return Some(format!(
            "At least one of the image dimensions exceed max allowed size: {MAX_SIDE} pixels"
        ));
    }
    if !is_kind {
        return Some(format!(
            "The image was specified using the {kind} media type, but the image appears to be another"
        ));
    }
    (!bytes.ends_with(b"IEND\xae\x42\x60\x82") && kind == "image/png")
        .then(|| "Could not process image".to_owned())
}

/// Returns the types and the data of the images anywhere in a request.
pub(super) fn images(value: &Value) -> Vec<(String, String)> {
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
    let image =
        json!({"type": "image", "source": {"type": "data", "value": data, "mimeType": kind}});
    input["messages"][0]["content"] = json!([{"type": "text", "text": "What is this?"}, image]);
    input
}

/// Returns the reasons for which attachments were skipped.
fn skipped(events: &[Value]) -> Vec<String> {
    let skipped = events.iter().filter(|event| event["name"] == "agui-server.attachment_skipped");
    skipped.map(|event| event["value"]["reason"].as_str().unwrap().to_owned()).collect()
}

/// Sends an image and then a plain message on the same thread. Returns the reason why the image was
/// skipped, and the number of requests that the provider got for each of the two.
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
        for data in [
            PNG,
            &with_line_ends,
            &url,
            PNG.trim_end_matches('='),
            &PNG.replace('+', "-").replace('/', "_"),
        ] {
            assert_eq!(
                look(api, "image/jpeg", data).await,
                (Vec::new(), [1, 1]),
                "{}: {data}",
                api.name
            );
        }
    }
}

#[tokio::test]
async fn an_image_that_a_provider_refuses_is_left_out_and_its_thread_continues() {
    let cut = &PNG[..64];
    let large = STANDARD.encode(
        [b"\x89PNG\r\n\x1a\n".as_slice(), &vec![0; 5 << 20], b"IEND\xae\x42\x60\x82"].concat(),
    );
    for api in APIS {
        for (kind, data) in [
            ("image/png", cut),
            ("image/png", &large),
            ("image/png", "AAAAAAAA"),
            ("image/jpeg", "bm90IGFuIGltYWdl"),
        ] {
            let (reasons, requests) = look(api, kind, data).await;
            let [reason] = &reasons[..] else { panic!("{}: {reasons:?}", api.name) };
            // A provider whose limit is known is not asked.
            let is_known = data.len() > MAX_IMAGE_CHARS && api.name == "Anthropic";
            let said = if is_known {
                "the image is too large, and cannot be scaled down"
            } else {
                "the provider refused it: "
            };
            assert!(reason.starts_with(said), "{}: {reason}", api.name);
            assert_eq!(
                requests,
                [if is_known { 1 } else { 2 }, 1],
                "{}: not with the next message",
                api.name
            );
        }
    }
}

fn png(image: RgbImage) -> String {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    STANDARD.encode(bytes.into_inner())
}

#[tokio::test]
async fn a_photo_is_scaled_to_what_the_provider_takes() {
    let mut number = 1_u32;
    let noise = RgbImage::from_fn(1200, 1150, |_, _| {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Rgb([(number >> 8) as u8, (number >> 16) as u8, (number >> 24) as u8])
    });
    let (photo, wide) = (png(noise), png(RgbImage::new(9000, 3)));
    assert!(photo.len() > MAX_IMAGE_CHARS);
    for api in APIS {
        for image in [&photo, &wide] {
            assert_eq!(look(api, "image/jpeg", image).await, (Vec::new(), [1, 1]), "{}", api.name);
        }
    }
}

#[tokio::test]
async fn the_oldest_images_leave_a_thread_that_has_too_many() {
    let api = APIS.iter().find(|api| api.name == "Anthropic").unwrap();
    let (server, provider): (Running, _) = api.serve_checked(refusal, |agent| agent).await;
    let mut first = with_image("image/png", PNG);
    let parts = first["messages"][0]["content"].as_array_mut().unwrap();
    let image = parts[1].clone();
    parts.extend(vec![image.clone(); 59]);
    provider.answer(api.says("I see."));
    assert_eq!(skipped(&play(&server, &first).await), [""; 0]);
    let mut second = next(&first, "r2", "and these");
    second["messages"][0]["content"] = vec![image; 60].into();
    provider.answer(api.says("Them, too."));
    let run = play(&server, &second).await;
    assert_eq!((text(&run).as_str(), skipped(&run)), ("Them, too.", Vec::new()));
    let asked = provider.requests();
    assert_eq!(
        (asked.len(), images(&asked[1].body).len()),
        (2, 95),
        "not one at a time, for the provider's cache"
    );
}

#[tokio::test]
async fn data_that_is_none_is_not_sent() {
    for api in APIS {
        for data in ["", "???", "iVBORw0KGgoAA"] {
            let (reasons, requests) = look(api, "image/png", data).await;
            assert_eq!(
                (reasons.len(), requests),
                (1, [1, 1]),
                "{}: {data:?} {reasons:?}",
                api.name
            );
        }
    }
}

#[tokio::test]
async fn an_agent_says_which_kinds_of_files_its_model_reads() {
    let pdf_and_image =
        json!({ "image": true, "audio": false, "video": false, "pdf": true, "file": true });
    for api in APIS {
        let (server, _): (Running, _) = api.serve_checked(refusal, |agent| agent).await;
        let capabilities: Value = server.get("/agents/a/capabilities").await.json().await.unwrap();
        let expected = match api.name {
            "Gemini" => {
                json!({ "image": true, "audio": true, "video": true, "pdf": true, "file": true })
            }
            "chat completions" => {
                json!({ "image": true, "audio": true, "video": false, "pdf": true, "file": true })
            }
            _ => pdf_and_image.clone(),
        };
        assert_eq!(capabilities["multimodal"]["input"], expected, "{}", api.name);
    }
}
