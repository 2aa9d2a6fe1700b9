//! Tools in Rust for a model: `cargo run --example tool [MODEL] [BASE_URL]`
//!
//! The provider has to support OpenAI's protocol. The default is Ollama on this machine, without a key:
//!
//! ```sh
//! ollama pull qwen3 && cargo run --example tool
//! curl -N http://127.0.0.1:8080/send-message -H 'Content-Type: application/json' -d \
//!   '{"threadId":"t1","runId":"r1","messages":[{"id":"m1","role":"user","content":"Where is my order 7?"}]}'
//! ```

use agui_server::{
    llm::{LlmAgent, ModelOptions, OpenAi, ProviderClient},
    prelude::*,
    tools::ApprovalRule,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct OrderQuery {
    /// The number on the invoice.
    order: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or_else(|| "qwen3".to_owned());
    let base_url = arguments.next().unwrap_or_else(|| "http://127.0.0.1:11434/v1".to_owned());
    let client = ProviderClient { base_url: Some(base_url), ..ProviderClient::default() };
    let model = OpenAi::chat(ModelOptions::new(model, client))?;

    let find_order = tool_fn(
        "find_order",
        "Finds an order by its number.",
        |query: OrderQuery, cx| async move {
            cx.report_progress("Looking into the archive", 0.5).await?;
            if query.order > 1000 {
                // The model gets this error and can correct its call.
                return Err(ToolError::new("order numbers end at 1000"));
            }
            Ok(json!({ "order": query.order, "status": "sent", "carrier": "by bicycle" }))
        },
    );
    // A person has to agree to each call: the run ends with an interrupt.
    let cancel_order =
        tool_fn("cancel_order", "Cancels an order.", |query: OrderQuery, _| async move {
            format!("Order {} is cancelled.", query.order)
        })
        .needs_approval(ApprovalRule::Always);

    let desk = LlmAgent::new(model).system_prompt("You answer questions about orders.");
    let desk = desk.tool(find_order).tool(cancel_order);
    Ok(Server::new().agent("desk", desk).serve("127.0.0.1:8080").await?)
}
