//! The schemas that are not the body of one handler.

use utoipa::{
    OpenApi, PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{AnyOfBuilder, Type},
    },
};

use super::schema::{text_of, typed};
use crate::{http::error::Refusal, observe::metrics::ERROR_CODES, protocol::Event};

/// Those of responses that several handlers give.
#[derive(OpenApi)]
#[openapi(components(schemas(Event, Refusal<'static>, RunErrorCode)))]
pub(super) struct SharedSchemas;

/// The code of a failed run. Members of this type refer to it by name, because their rooms do not know all codes.
enum RunErrorCode {}

impl PartialSchema for RunErrorCode {
    fn schema() -> RefOr<Schema> {
        let own = text_of(ERROR_CODES.iter().copied()).description(Some("The codes of this server."));
        let others = "Codes that an agent or the endpoint of a remote agent chooses.";
        AnyOfBuilder::new().item(own).item(typed(Type::String).description(Some(others))).into()
    }
}

impl ToSchema for RunErrorCode {}
