//! The imports of the promises.

pub(super) use std::{cmp::Reverse, collections::HashSet, time::Duration};

pub(super) use agui_protocol::{Interrupt, Message, MessageId, RunId, TokenUsage};
pub(super) use futures::future::join_all;
pub(super) use serde_json::{Map, Value, json};

pub(super) use super::steps::*;
pub(super) use crate::*;
