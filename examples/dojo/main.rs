//! The feature set of the AG-UI dojo, without a model: `cargo run --example dojo [PORT] [PACE]`
//!
//! Each feature answers at a path of its own (`POST /agentic_chat`, …), as in the dojo's "Server Starter (All
//! Features)", so that the dojo's pages, or a front end of your own, can be tried against it:
//!
//! ```sh
//! cargo run --example dojo                                                     # http://127.0.0.1:8000
//! SERVER_STARTER_ALL_FEATURES_URL=http://127.0.0.1:8000 pnpm --dir apps/dojo dev    # in a checkout of AG-UI
//! ```
//!
//! Then open `/server-starter-all-features/feature/agentic_chat` in the dojo. Its menu has the first seven features;
//! for the others, add their paths to that entry in the dojo's `agents.ts` and `menu.ts`.
//!
//! Features pause between events, so that a person sees them arrive one by one. `PACE` is the factor of the pauses: 0.5
//! is twice as fast, 0 is without pauses. Threads are stored in memory until the server ends.

mod agentic_chat;
mod agentic_generative_ui;
mod backend_tool_rendering;
mod error_flow;
mod human_in_the_loop;
mod interrupt;
mod multimodal;
mod parts;
mod predictive_state_updates;
mod reasoning;
mod shared_state;
mod subagents;
mod tool_based_generative_ui;

use agui_server::{
    logs::{self, LogOptions},
    prelude::*,
};

use parts::Pace;

/// The port at which the dojo expects the server.
const PORT: u16 = 8000;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    logs::init(&LogOptions::default())?;
    let mut arguments = std::env::args().skip(1);
    let port =
        arguments.next().map_or(Ok(PORT), |port| port.parse()).map_err(std::io::Error::other)?;
    let pace = arguments
        .next()
        .map_or(Ok(Pace::default()), |pace| pace.parse())
        .map_err(std::io::Error::other)?;

    let server = Server::new();
    let server = feature(server, pace, "agentic_chat", agentic_chat::run);
    let server = feature(server, pace, "backend_tool_rendering", backend_tool_rendering::run);
    let server = feature(server, pace, "human_in_the_loop", human_in_the_loop::run);
    let server = feature(server, pace, "agentic_generative_ui", agentic_generative_ui::run);
    let server = feature(server, pace, "tool_based_generative_ui", tool_based_generative_ui::run);
    let server = feature(server, pace, "shared_state", shared_state::run);
    let server = feature(server, pace, "predictive_state_updates", predictive_state_updates::run);

    let server = feature(server, pace, "reasoning", reasoning::run);
    let server = feature(server, pace, "multimodal", multimodal::run);
    let server = feature(server, pace, "interrupt", interrupt::run);
    let server = feature(server, pace, "subagents", subagents::run);
    let server = feature(server, pace, "error_flow", error_flow::run);
    // The dojo has other names for two features.
    let server = feature(server, pace, "agentic_chat_reasoning", reasoning::run);
    let server = feature(server, pace, "agentic_chat_multimodal", multimodal::run);
    server.serve(("127.0.0.1", port)).await
}

/// Serves a feature at `POST /{name}`.
fn feature<F, R>(server: Server, pace: Pace, name: &str, run: F) -> Server
where
    F: Fn(RunAgentInput, Emitter, Pace) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), AgentError>> + Send + 'static,
{
    server.agent_at(&format!("/{name}"), name, agent_fn(move |input, out| run(input, out, pace)))
}
