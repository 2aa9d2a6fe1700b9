//! Remote agents over real sockets on both sides: the events that a client gets from endpoints that behave, and from
//! ones that do not.

mod conformance;
mod endpoint;
mod failures;
mod forwarding;
mod headers;
mod lifetime;
mod mended;
mod refused;
mod replays;
mod stream_formats;
mod thread_ids;

use crate::support::{self, running, server};
