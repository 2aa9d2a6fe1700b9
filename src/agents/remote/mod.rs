//! An agent that forwards runs to another AG-UI endpoint, in whatever language that is written.
//!
//! The endpoint gets each run with the stored messages and state, and its events become the run's own. This server adds
//! authentication, stored threads, reconnection, limits, and a stream whose order is always legal.
//!
//! A run fails with one of these codes:
//!
//! | code | reason |
//! |---|---|
//! | `remote_unreachable` | no connection |
//! | `remote_rejected` | the endpoint refused the request (4xx), or redirects it (3xx) |
//! | `remote_failed` | the endpoint failed (5xx) |
//! | `remote_timeout` | the endpoint was silent for longer than `idle_timeout` |
//! | `remote_protocol` | the response is not AG-UI |
//! | `remote_incomplete` | the stream ended before the run did |
//! | `remote_error` | the remote agent failed without a code of its own |
//!
//! `options` are the options, `request` sends a run, `reader` reads events of AG-UI 1.0 and older versions, `agent`
//! decides how the run ends, and `error` has the codes above.

mod agent;
mod error;
mod options;
mod reader;
mod request;

pub use self::{agent::Remote, error::RemoteError, options::RemoteOptions};
