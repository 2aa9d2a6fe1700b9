//! Responses of other servers, in pieces, and the rules of a decoded answer.

use std::{collections::HashMap, time::Duration};

use agui_base::upstream::events::StreamLimits;
use agui_llm::{
    BlockStart, ModelEvent,
    testing::{Api, answer},
};
use bytes::Bytes;
use futures::stream;

use crate::{amplified, bounded};

/// An answer of a model as it was decoded, up to the end or the first error.
type ModelAnswer = Vec<Result<ModelEvent, String>>;

/// Cuts bytes into pieces. `how` 0 is one piece, 1 single bytes, any other number the start of pseudorandom lengths.
pub fn pieces(bytes: &[u8], how: u8) -> Vec<Bytes> {
    let (mut rest, mut pieces, mut random) = (bytes, Vec::new(), u32::from(how));
    while !rest.is_empty() {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = match how {
            0 => rest.len(),
            1 => 1,
            _ => 1 + (random >> 16) as usize % (1 << (random >> 29)),
        };
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = behind;
    }
    pieces
}

/// Returns a response with a body of these pieces.
pub fn response(pieces: Vec<Bytes>, is_gzip: bool) -> reqwest::Response {
    let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
    let mut response = http::Response::new(reqwest::Body::wrap_stream(stream::iter(pieces)));
    if is_gzip {
        response.headers_mut().insert("content-encoding", http::HeaderValue::from_static("gzip"));
    }
    response.into()
}

/// Checks that blocks are started once and in order, continued and ended only while they are open, and all ended before
/// the answer's end, which is last. Replaces the ids of calls, because absent ones are random.
fn check_model_answer(mut answer: ModelAnswer) -> ModelAnswer {
    let mut open = HashMap::new();
    let mut started = 0;
    let mut is_over = false;
    for event in &mut answer {
        assert!(!is_over, "{event:?} follows the end");
        match event {
            Ok(ModelEvent::Start { index, block }) => {
                assert_eq!(*index, started, "blocks are numbered in order");
                open.insert(started, matches!(block, BlockStart::Text));
                started += 1;
                if let BlockStart::Call { id, name } = block {
                    assert!(!name.is_empty(), "a call has a name");
                    *id = started.to_string().into();
                }
            }
            Ok(ModelEvent::Delta { index, text }) => {
                assert!(!text.is_empty(), "no delta is empty");
                assert!(open.contains_key(index), "block {index} is not open");
            }
            Ok(ModelEvent::End { index, .. }) => assert!(open.remove(index).is_some(), "block {index} is not open"),
            Ok(ModelEvent::Citation { index, .. }) => {
                assert!(*index < started, "block {index} does not exist");
            }
            Ok(ModelEvent::Stop(_)) => {
                assert!(open.is_empty(), "blocks {open:?} are open at the end");
                is_over = true;
            }
            Ok(_) => {}
            Err(_) => is_over = true,
        }
    }
    answer
}

/// Decodes a body in pieces and as a whole, and checks both answers.
pub fn check_answers(api: Api, server: Option<&str>, data: &[u8], how: u8) {
    let body = amplified(data);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let limits = StreamLimits { max_event_bytes: 16 << 10, idle_timeout: Duration::from_secs(1) };
    let read = |how: u8| runtime.block_on(answer(api, server, response(pieces(&body, how), false), limits));
    let cut = check_model_answer(bounded(body.len(), || read(how)));
    let whole = check_model_answer(read(0));
    assert_eq!(format!("{cut:?}"), format!("{whole:?}"), "cut and whole");
}
