//! Images and files, and parts that the model cannot read.

use super::*;
use agui_protocol::{MediaPart, PartSource};

fn data(mime_type: &str) -> MediaPart {
    PartSource::Data { value: "AA==".to_owned(), mime_type: mime_type.to_owned() }.into()
}

fn file(provider: Option<&str>) -> MediaPart {
    PartSource::File {
        value: "file-1".to_owned(),
        provider: provider.map(str::to_owned),
        mime_type: None,
    }
    .into()
}

#[test]
fn files_are_blocks_and_text_files_are_documents() {
    let url = |mime_type: Option<&str>| PartSource::Url {
        value: "https://a/b".to_owned(),
        mime_type: mime_type.map(str::to_owned),
    };
    let named = |mut media: MediaPart, name: &str| {
        media.metadata = Some(json!({"filename": name}));
        media
    };
    let of = |value: &str, mime_type: &str| {
        MediaPart::from(PartSource::Data {
            value: value.to_owned(),
            mime_type: mime_type.to_owned(),
        })
    };
    let parts = vec![
        ContentPart::text("see"),
        ContentPart::text(" \n"),
        ContentPart::Image(data("image/JPG")),
        ContentPart::image(url(None)),
        ContentPart::Image(file(Some("anthropic"))),
        ContentPart::Document(named(data("application/pdf"), "a.pdf")),
        ContentPart::Document(url(Some("application/pdf")).into()),
        ContentPart::Document(named(of("YSxi", "text/csv; charset=utf-8"), "a.csv")),
        ContentPart::Document(named(of("YSA9IDE=", "application/octet-stream"), "a.py")),
        ContentPart::Document(named(of("4Q==", "text/plain; charset=latin1"), "a.txt")),
    ];
    let request = ModelRequest { steps: vec![ModelStep::User(parts)], ..ModelRequest::default() };
    let document = |text: &str, name: &str| {
        let source = json!({"type": "text", "media_type": "text/plain", "data": text});
        json!({"type": "document", "source": source, "title": name})
    };
    let expected = json!([
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://a/b"}},
        {"type": "image", "source": {"type": "file", "file_id": "file-1"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}, "title": "a.pdf"},
        {"type": "document", "source": {"type": "url", "url": "https://a/b"}},
        document("a,b", "a.csv"),
        document("a = 1", "a.py"),
        document("á", "a.txt"),
    ]);
    assert_eq!(sent(&options("m"), &request)["messages"][0]["content"], expected);
    let body = body(&options("m"), &request, true);
    assert_eq!((body.betas, body.sent.skipped), (vec![FILES_BETA], Vec::new()));
}

#[test]
fn a_long_text_file_is_cut_and_a_blank_one_is_text() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let content = |text: &str| {
        let source =
            PartSource::Data { value: STANDARD.encode(text), mime_type: "text/plain".to_owned() };
        let steps = vec![ModelStep::User(vec![ContentPart::Document(source.into())])];
        let body = body(&options("m"), &ModelRequest { steps, ..ModelRequest::default() }, true);
        (body.sent.json["messages"][0]["content"][0].clone(), body.sent.skipped.len())
    };
    let (document, skipped) = content(&"x".repeat(1 << 20));
    let text = document["source"]["data"].as_str().unwrap();
    assert!(text.len() < 300_000 && text.ends_with("is cut.)"), "{} bytes", text.len());
    assert_eq!(skipped, 1);
    // The API refuses a document of white space.
    assert_eq!((content(" \n").0["type"].as_str(), content(" \n").1), (Some("text"), 0));
}

#[test]
fn what_the_model_cannot_read_is_told_to_it_and_reported() {
    let url =
        PartSource::Url { value: "https://a/b".to_owned(), mime_type: Some("text/csv".to_owned()) };
    let mut sound = data("audio/wav");
    sound.metadata = Some(json!({"filename": "a.wav"}));
    let parts = vec![
        ContentPart::Image(data("image/tiff")),
        ContentPart::Image(file(Some("openai"))),
        ContentPart::Audio(sound),
        ContentPart::Video(data("video/mp4")),
        ContentPart::Document(data("application/zip")),
        ContentPart::Document(url.into()),
    ];
    let request = ModelRequest { steps: vec![ModelStep::User(parts)], ..ModelRequest::default() };
    let answered =
        [&request.steps[..], &[assistant(vec![Block::Text("a".to_owned())]), user("and")]].concat();
    let later = ModelRequest { steps: answered, ..ModelRequest::default() };
    assert!(body(&options("m"), &later, true).sent.skipped.is_empty(), "reported again");
    let body = body(&options("m"), &request, true);
    let skipped: Vec<_> = body
        .sent
        .skipped
        .iter()
        .map(|skipped| (skipped.kind, skipped.mime_type.as_deref()))
        .collect();
    let expected = [
        ("image", Some("image/tiff")),
        ("image", None),
        ("audio", Some("audio/wav")),
        ("video", Some("video/mp4")),
        ("document", Some("application/zip")),
        ("document", Some("text/csv")),
    ];
    assert_eq!(skipped, expected);
    assert_eq!(body.sent.skipped[2].name.as_deref(), Some("a.wav"));
    let notes = body.sent.json["messages"][0]["content"].as_array().unwrap();
    for (note, skipped) in notes.iter().zip(&body.sent.skipped) {
        let note = note["text"].as_str().unwrap();
        assert!(note.contains("You cannot read it") && note.contains(&skipped.reason), "{note}");
    }
    assert_eq!(notes.len(), skipped.len());
}

#[test]
fn results_may_have_images_and_may_be_empty() {
    let content = |content: MessageContent| {
        messages(vec![user("hi"), assistant(vec![call("a", "{}")]), result("a", content)])[2]["content"].take()
    };
    let block =
        |content: Value| json!([{"type": "tool_result", "tool_use_id": "a", "content": content}]);
    let image = || ContentPart::Image(data("image/png"));
    let sent = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let text = json!({"type": "text", "text": "see"});
    assert_eq!(content(vec![ContentPart::text("see"), image()].into()), block(json!([text, sent])));
    let note = content(vec![ContentPart::Video(data("video/mp4"))].into());
    assert!(
        note[0]["content"][0]["text"].as_str().unwrap().contains("this model takes no videos"),
        "{note}"
    );
    assert_eq!(content("".into()), json!([{"type": "tool_result", "tool_use_id": "a"}]));
    assert_eq!(content(Vec::new().into()), json!([{"type": "tool_result", "tool_use_id": "a"}]));
}
