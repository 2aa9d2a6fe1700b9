//! Reads a response as [`Transport`](super::Transport) does, without a request and without retries.

use futures::StreamExt as _;
use reqwest::Response;

use super::{AnswerEvents, DecodeStep, Decoder};
use crate::{
    llm::ModelEvent,
    upstream::events::{StreamLimits, provider_events},
};

pub(in crate::llm) async fn decode(
    mut decoder: Box<dyn Decoder>,
    response: Response,
    limits: StreamLimits,
) -> Vec<Result<ModelEvent, String>> {
    let mut output = AnswerEvents::default();
    let mut events = provider_events(response, limits);
    let failure = loop {
        let step = match events.next().await {
            Some(Ok(event)) => {
                decoder.event(event.name.as_deref(), &event.data, &mut output).map_err(|error| format!("{error:?}"))
            }
            Some(Err(_)) | None if decoder.finish(&mut output) => break None,
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the stream ended before the answer did".to_owned()),
        };
        match step {
            Ok(DecodeStep::More) => {}
            Ok(DecodeStep::Complete) if decoder.finish(&mut output) => break None,
            Ok(DecodeStep::Complete) => break Some("the answer ended too early".to_owned()),
            Err(failure) => break Some(failure),
        }
    };
    output.events.into_iter().map(Ok).chain(failure.map(Err)).collect()
}
