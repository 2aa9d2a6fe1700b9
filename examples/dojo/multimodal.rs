//! `/multimodal`, in the dojo `/agentic_chat_multimodal`: the agent says which files it was sent with the message.

use agui_server::{
    agent::{Agent, RunContext, emit::TextMessage, events},
    protocol::{ContentPart, MediaPart, Message, MessageContent, PartSource, RunAgentInput},
};

pub(crate) fn agent() -> impl Agent {
    |input: RunAgentInput, _: RunContext| events(TextMessage::whole(describe(&input)))
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
        PartSource::Data { value, mime_type } => format!("{mime_type}, {} bytes", decoded_length(value)),
        PartSource::Url { value, .. } => format!("at {value}"),
        PartSource::File { value, .. } => format!("the provider's file {value}"),
    }
}

/// How many bytes a base64 text stands for.
fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}
