//! `/tool_based_generative_ui`: a haiku, which is the arguments of the tool `generate_haiku`.
//!
//! A page that offers the tool gets the call and answers it. For one that does not, the agent answers its call itself.

use agui_server::{
    agent::{
        Agent, EventStream, RunContext,
        emit::{TextMessage, ToolCallEvents},
        event_stream, events,
    },
    protocol::{Event, Message, MessageId, RunAgentInput, event::MessagesSnapshot},
};
use serde_json::{Value, json};

use crate::parts::{Pace, answered_call, followed_by, last_result};

const TOOL: &str = "generate_haiku";
const CREATED: &str = "Haiku created";
/// How many characters of the arguments come at a time, for pages that draw the haiku while it comes.
const PIECE: usize = 24;

pub(crate) fn agent(pace: Pace) -> impl Agent {
    move |input: RunAgentInput, _: RunContext| {
        if last_result(&input).is_some() {
            return events(TextMessage::whole(CREATED));
        }
        if input.last_user_text().is_some_and(|text| text.trim() == "thanks") {
            return events([restated(&input, [Message::assistant(MessageId::random(), CREATED)])]);
        }
        if input.tool(TOOL).is_some() {
            return call(pace);
        }
        events([restated(&input, answered_call(TOOL, &haiku(), CREATED))])
    }
}

fn call(pace: Pace) -> EventStream {
    event_stream(async_stream::try_stream! {
        let call = ToolCallEvents::new(TOOL);
        let arguments: Vec<char> = haiku().to_string().chars().collect();
        yield call.start();
        for piece in arguments.chunks(PIECE) {
            yield call.delta(String::from_iter(piece));
            pace.pause(50).await;
        }
        yield call.end();
    })
}

fn restated(input: &RunAgentInput, more: impl IntoIterator<Item = Message>) -> Event {
    MessagesSnapshot::new(followed_by(input, more)).into()
}

fn haiku() -> Value {
    json!({
        "japanese": ["夜明け前", "光る画面に", "道ひとつ"],
        "english": ["Before the dawn breaks,", "upon a glowing display", "a single road lies."],
        "image_name": "Mount_Fuji_Lake_Reflection_Cherry_Blossoms_Sakura_Spring.jpg",
        "gradient": "linear-gradient(135deg, #1e3a8a 0%, #f9a8d4 100%)",
    })
}
