//! The UI message stream of the AI SDK, so that a page with `useChat` needs no server in Node.
//!
//! The format is the one that `ai` 7 reads and writes. Runs and threads are shared with all other
//! routes; a chat is a thread. One message of a page stands for several stored messages: all from a
//! user's message to the next one. Each part carries the id of its stored message in its provider
//! metadata, so that a request is read without the store. `request.rs` reads a request, `encoder.rs`
//! writes the events of a run, `stored.rs` the messages of a thread.

mod encoder;
mod page_message;
mod part;
mod request;
mod routes;
mod stored;

#[cfg(test)]
pub(crate) use encoder::AiSdkEncoder;
pub(crate) use routes::route_set;
