//! `/multimodal`, in the dojo `/agentic_chat_multimodal`: the agent lists the files of the newest message.

use agui_server::{
    prelude::*,
    protocol::{ContentPart, MediaPart, MessageContent, PartSource},
};

use crate::parts::Pace;

pub(crate) async fn run(input: RunAgentInput, out: Emitter, _: Pace) -> Result<(), AgentError> {
    out.text(describe(&input)).await
}

fn describe(input: &RunAgentInput) -> String {
    let newest = input.messages.iter().rev().find_map(|message| match message {
        Message::User(user) => Some(&user.content),
        _ => None,
    });
    let parts = match newest {
        Some(MessageContent::Parts(parts)) => parts.as_slice(),
        _ => &[],
    };
    let files: Vec<_> = parts.iter().filter_map(file).collect();
    match files.as_slice() {
        [] => "There is no file with your message. Attach an image, for example.".to_owned(),
        [one] => format!("I got {one}."),
        [all @ .., last] => format!("I got {} and {last}.", all.join(", ")),
    }
}

fn file(part: &ContentPart) -> Option<String> {
    let (kind, media) = match part {
        ContentPart::Image(media) => ("an image", media),
        ContentPart::Audio(media) => ("a recording", media),
        ContentPart::Video(media) => ("a video", media),
        ContentPart::Document(media) => ("a document", media),
        _ => return None,
    };
    Some(format!("{kind} ({})", details(media)))
}

fn details(media: &MediaPart) -> String {
    match &media.source {
        PartSource::Data { value, mime_type } => {
            format!("{mime_type}, {} bytes", decoded_length(value))
        }
        PartSource::Url { value, .. } => format!("at {value}"),
        PartSource::File { value, .. } => format!("the provider's file {value}"),
    }
}

/// Returns the number of bytes that a base64 text encodes.
fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}
