//! A complete server with one agent: `cargo run --example hello`

use agui_server::prelude::*;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    Server::new().agent("hello", hello).serve("127.0.0.1:8080").await
}

async fn hello(input: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
    let mut message = out.text_message().await?;
    message.push("You said: ").await?;
    message.push(input.last_user_text().unwrap_or_default()).await?;
    message.end().await
}
