//! The named-event endpoints, tested as the "AG-UI Protocol Implementation Guide" demands: its unit tests (`models`), its
//! integration tests by name (`protocol`) with the real command and a scripted provider, and its interrupts (`hitl`).

#[path = "../../../examples/named_events/client.rs"]
#[allow(dead_code, unreachable_pub, reason = "a file to copy, of which the tests need a part")]
mod client;
mod history;
mod hitl;
mod models;
mod protocol;
mod questions;
mod refusals;
mod streams;

use crate::support::{self, named_events::*, provider, server as process};
