//! Agents that come with the server.

mod demo_script;
mod remote;
mod replay;
