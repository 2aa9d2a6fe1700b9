//! Agents that come with the server.

mod remote;
mod replay;
