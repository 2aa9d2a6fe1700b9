//! Tools of MCP servers, which this server starts as processes or reaches by URL.
//!
//! A server is connected in the background, for as long as its [`McpServer`] lives: startup neither waits for it nor
//! fails because of it. A connection that is lost is opened again after a pause that grows from 1 to 60 seconds; an
//! uptime of 60 seconds resets the pause. Meanwhile the tools stay listed, and calls fail with "not available".
//!
//! **Names.** A tool has the `prefix` and the name that its server gives it, cut to 64 characters; all but ASCII
//! letters, digits, `-` and `_` are replaced by `_`. Of several tools with one name, the first is offered and the
//! others are warned about.
//!
//! **Limits.** A process inherits only the variables in `process.rs`. Results are cut to `max_result_bytes`. A call
//! that times out, or whose future is dropped, is cancelled at the server. After a timeout the server is pinged, and
//! the connection is opened again if the ping fails.
//!
//! `supervisor` keeps one server connected, `connection` speaks the protocol, `tool` makes calls, and `result` converts
//! their results.

mod client_slot;
mod connection;
mod options;
mod process;
mod result;
mod server;
mod supervisor;
mod tool;

pub use self::{
    options::{MAX_RESULT_BYTES, McpServerOptions, TIMEOUT},
    server::McpServer,
};
