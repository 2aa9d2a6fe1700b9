//! Pictures that models make: the user gets them as files, and the model gets them again with the next message.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    media::{images, refusal},
    misbehaving::{APIS, code, next, play, stream, text},
};
use crate::support::running::input;

/// Returns a picture of 1.5 MB in base64.
fn picture() -> String {
    STANDARD.encode(
        [b"\x89PNG\r\n\x1a\n".as_slice(), &vec![7; 1_500_000], b"IEND\xae\x42\x60\x82"].concat(),
    )
}

/// Returns the events of an answer that is a picture alone.
fn drawn(api: &str, base64: &str) -> Option<Vec<Value>> {
    Some(match api {
        "chat completions" => {
            let image = json!({"type": "image_url", "index": 0, "image_url": {"url": format!("data:image/png;base64,{base64}")}});
            let delta = json!({"role": "assistant", "content": "", "images": [image]});
            vec![
                json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
                json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]}),
            ]
        }
        "Responses" => {
            let item = |status: &str, result: Value| json!({"type": "image_generation_call", "id": "ig_1", "status": status, "output_format": "png", "result": result});
            let done = item("completed", base64.into());
            let response = json!({"object": "response", "status": "completed", "output": [done], "error": null});
            vec![
                json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", Value::Null)}),
                json!({"type": "response.image_generation_call.generating", "output_index": 0, "item_id": "ig_1"}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": done}),
                json!({"type": "response.completed", "response": response}),
            ]
        }
        "Gemini" => {
            let draft =
                json!({"thought": true, "inlineData": {"mimeType": "image/png", "data": "AAAA"}});
            let image = json!({"inlineData": {"mimeType": "image/png", "data": base64}, "thoughtSignature": "c2ln"});
            vec![
                json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [draft]}}]}),
                json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [image]}, "finishReason": "STOP"}]}),
            ]
        }
        _ => return None,
    })
}

#[tokio::test]
async fn a_picture_of_a_model_is_a_file_that_it_gets_with_the_next_message() {
    let picture = picture();
    let mut tried = 0;
    for api in APIS {
        let Some(answer) = drawn(api.name, &picture) else { continue };
        tried += 1;
        let (server, provider) = api.serve_checked(refusal, |agent| agent).await;
        let first = input("Draw a cat.");
        provider.answer(stream(answer));
        let run = play(&server, &first).await;
        assert_eq!(code(&run), None, "{}: {run:?}", api.name);
        let files: Vec<_> =
            run.iter().filter(|event| event["activityType"] == "agui-server.file").collect();
        let [file] = files[..] else { panic!("{}: {run:?}", api.name) };
        let content = &file["content"];
        assert_eq!(
            (&content["name"], &content["mimeType"]),
            (&json!("image.png"), &json!("image/png"))
        );
        let read = server
            .client
            .get(content["url"].as_str().unwrap())
            .send()
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        assert!(STANDARD.encode(read) == picture, "{}", api.name);
        provider.answer(api.says("It is darker."));
        let second = play(&server, &next(&first, "r2", "Make it darker.")).await;
        assert_eq!(
            (text(&second).as_str(), code(&second)),
            ("It is darker.", None),
            "{}: {second:?}",
            api.name
        );
        let asked = provider.requests();
        assert_eq!(
            asked.len(),
            2,
            "{}: the picture is an answer, and no provider refuses it",
            api.name
        );
        let sent = images(&asked[1].body);
        assert!(sent.len() == 1 && sent[0].1 == picture, "{}", api.name);
    }
    assert_eq!(tried, 3);
}
