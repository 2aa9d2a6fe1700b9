//! The refusals of endpoints, in groups of what a handler does: `responses(…, refuse::Body, refuse::Store)`. Those of a group
//! are on the variants of the errors ([`refusals`](crate::base::refusal)).

use std::collections::{BTreeMap, BTreeSet};

use utoipa::{
    IntoResponses, PartialSchema, ToSchema,
    openapi::{RefOr, Response, Schema},
};

use super::schema::text_of;
use crate::{
    base::refusal::{ErrorCode, RefusalCodes as _, RefusalGroup},
    http::error::ApiError,
};

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
}

fn responses_of(group: RefusalGroup) -> BTreeMap<String, RefOr<Response>> {
    let codes = ApiError::refusal_codes().into_iter().filter(|code| code.groups.contains(&group));
    let key = |code: ErrorCode| format!("{}{SEPARATOR}{}", code.status.as_u16(), code.name);
    codes.map(|code| (key(code), Response::default().into())).collect()
}

/// Returns the status and the code of a refusal. `None` for another response.
pub(super) fn parse_key(key: &str) -> Option<(&str, &str)> {
    key.split_once(SEPARATOR)
}

impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        let names: BTreeSet<_> = ApiError::refusal_codes().iter().map(|code| code.name).collect();
        text_of(names).into()
    }
}

impl ToSchema for ErrorCode {}
