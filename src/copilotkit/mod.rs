//! The CopilotKit runtime API, so that a page sets its `runtimeUrl` to this server and needs no runtime in Node.
//!
//! | path below the prefix | response |
//! |---|---|
//! | `GET /info` | the agents, and the runtime features that this server has |
//! | `POST /agent/{agent}/run` | a run, which by default goes on when the page is reloaded |
//! | `POST /agent/{agent}/connect` | snapshots of a thread, then its running run |
//! | `POST /agent/{agent}/stop/{thread}` | ends the running run of a thread |
//! | `GET /threads?agentId=…` | the caller's threads with an agent |
//! | `DELETE /threads/{thread}` | deletes a thread |
//! | `GET /threads/{thread}/messages`, `…/state`, `…/events` | the content of a thread |
//! | `POST` at the prefix itself | any of these requests in an envelope |
//!
//! The format is the one that the client in `@copilotkit/core` 1.75 reads and writes. Runs and threads are those of all
//! other routes. `routes.rs` lists the routes, `options.rs` the options; each resource has a file.

mod agents;
mod connect;
mod envelope;
mod info;
mod options;
mod routes;
mod stop;
mod threads;

pub use options::CopilotKitOptions;
pub(crate) use routes::routes;
