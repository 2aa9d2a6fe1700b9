//! The refusals of endpoints, in groups of what a handler does: `responses(…, refuse::Body,
//! refuse::Store)`. The refusals of a group are on the variants of the errors
//! ([`refusals`](agui_base::refusal)).

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use utoipa::{
    IntoResponses, PartialSchema, ToSchema,
    openapi::{RefOr, Response, Schema},
};

use super::schema::text_of;
use crate::http::error::ApiError;
use agui_base::refusal::{ErrorCode, RefusalCodes as _, RefusalGroup};

/// Separates the status of a refusal from its code. `document.rs` joins the codes of a status.
const SEPARATOR: char = ' ';

macro_rules! groups {
    ($($group:ident)*) => {$(
        pub(crate) enum $group {}

        impl IntoResponses for $group {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                responses_of(RefusalGroup::$group)
            }
        }
    )*};
}

groups! {
    Every WithoutAuthentication Authentication MediaType Url Parameter Body ResponseMemory Agent Store Limits Start Thread Run
    Message Follow Running Edit Copy File FileDeletion FileRange Upload Loopback Shutdown Streams Socket Followers Envelope
    Completion
}

fn responses_of(group: RefusalGroup) -> BTreeMap<String, RefOr<Response>> {
    let codes = ApiError::refusal_codes().into_iter().filter(|code| code.groups.contains(&group));
    let key = |code: ErrorCode| format!("{}{SEPARATOR}{}", code.status.as_u16(), code.name);
    codes.map(|code| (key(code), Response::default().into())).collect()
}

/// Returns responses with codes that are not on the variants of errors, each with its status.
pub(crate) fn responses_with(codes: &[(u16, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let key = |(status, name): &(u16, &str)| format!("{status}{SEPARATOR}{name}");
    codes.iter().map(|code| (key(code), Response::default().into())).collect()
}

/// Returns the status and the code of a refusal. `None` for another response.
pub(super) fn parse_key(key: &str) -> Option<(&str, &str)> {
    key.split_once(SEPARATOR)
}

/// The schema of the codes of refusals.
pub(crate) enum ErrorCodeSchema {}

impl PartialSchema for ErrorCodeSchema {
    fn schema() -> RefOr<Schema> {
        let names: BTreeSet<_> = ApiError::refusal_codes().iter().map(|code| code.name).collect();
        text_of(names).into()
    }
}

impl ToSchema for ErrorCodeSchema {
    fn name() -> Cow<'static, str> {
        "ErrorCode".into()
    }
}
