//! A complete server with an agent of its own: `cargo run --example hello`

use agui_server::{
    Server,
    agent::{RunContext, emit::TextMessage, event_stream},
    protocol::RunAgentInput,
};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tracing_subscriber::fmt().init();
    let hello = |input: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            let message = TextMessage::new();
            yield message.start();
            yield message.delta("You said: ");
            yield message.delta(input.last_user_text().unwrap_or_default());
            yield message.end();
        })
    };
    Server::new().agent("hello", hello).serve("127.0.0.1:8080").await
}
