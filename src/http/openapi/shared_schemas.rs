//! The schemas that are not the body of one handler.

use utoipa::{
    OpenApi, PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{AnyOfBuilder, Type},
    },
};

use super::schema::{text_of, typed};
use crate::{
    base::RunErrorCode,
    http::{refusal_response::Refusal, run_document::RunDocument},
    protocol::Event,
};

/// Those of responses that several handlers give.
#[derive(OpenApi)]
#[openapi(components(schemas(Event, Refusal<'static>, RunDocument, RunErrorCode)))]
pub(super) struct SharedSchemas;

impl PartialSchema for RunErrorCode {
    fn schema() -> RefOr<Schema> {
        let own = text_of(RunErrorCode::ALL.iter().map(|code| code.as_str()))
            .description(Some("The codes of this server."));
        let others = "Codes that an agent or the endpoint of a remote agent chooses.";
        AnyOfBuilder::new().item(own).item(typed(Type::String).description(Some(others))).into()
    }
}

impl ToSchema for RunErrorCode {}
