//! `GET /threads/{thread}/runs/{run}/log`: the log of a detached run as a read-only stream of the Durable Streams
//! protocol (<https://github.com/durable-streams/durable-streams>, PROTOCOL.md of 2026-01-24). The messages are the
//! run's events, and the stream is closed when the run has ended.
//!
//! A client reads what there is, waits for more (`live=long-poll`), or keeps the connection (`live=sse`).

mod page;
mod position;
mod read;
mod sse;

pub(super) use read::{head, read};
