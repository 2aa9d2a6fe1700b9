//! The imports of the promises.

pub(super) use std::{cmp::Reverse, collections::HashSet, time::Duration};

pub(super) use agui_server::{
    protocol::{Interrupt, Message, MessageId, TokenUsage},
    store::*,
};
pub(super) use futures::future::join_all;
pub(super) use serde_json::{Map, Value, json};

pub(super) use super::steps::*;
