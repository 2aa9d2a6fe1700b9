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
//! Then open `/server-starter-all-features/feature/agentic_chat` in the dojo. It knows the
//! first seven features there; for the others, add their paths to that entry in the dojo's `agents.ts` and `menu.ts`.
//!
//! Features take their time, so that one can watch. `PACE` is a factor of it: 0.5 is twice as fast, 0 is at once.
//! Threads are kept in memory until the server ends.

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
    Server,
    agent::Agent,
    telemetry::logs::{self, Format},
};

use parts::Pace;

/// Where the dojo looks for it unless it is told otherwise.
const PORT: u16 = 8000;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    logs::init("info", Format::Text).map_err(std::io::Error::other)?;
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(PORT), |port| port.parse()).map_err(std::io::Error::other)?;
    let pace = arguments.next().map_or(Ok(Pace::default()), |pace| pace.parse()).map_err(std::io::Error::other)?;

    let server = Server::new();
    let server = feature(server, "agentic_chat", agentic_chat::agent(pace));
    let server = feature(server, "backend_tool_rendering", backend_tool_rendering::agent());
    let server = feature(server, "human_in_the_loop", human_in_the_loop::agent(pace));
    let server = feature(server, "agentic_generative_ui", agentic_generative_ui::agent(pace));
    let server = feature(server, "tool_based_generative_ui", tool_based_generative_ui::agent(pace));
    let server = feature(server, "shared_state", shared_state::agent());
    let server = feature(server, "predictive_state_updates", predictive_state_updates::agent(pace));

    let server = feature(server, "reasoning", reasoning::agent(pace));
    let server = feature(server, "multimodal", multimodal::agent());
    let server = feature(server, "interrupt", interrupt::agent());
    let server = feature(server, "subagents", subagents::agent(pace));
    let server = feature(server, "error_flow", error_flow::agent());
    // What the dojo calls two of them.
    let server = feature(server, "agentic_chat_reasoning", reasoning::agent(pace));
    let server = feature(server, "agentic_chat_multimodal", multimodal::agent());
    server.serve(("127.0.0.1", port)).await
}

/// Serves a feature at `POST /{name}`.
fn feature(server: Server, name: &str, agent: impl Agent) -> Server {
    server.agent_at(&format!("/{name}"), name, agent)
}
