//! The schemas that are not the body of one handler.

use std::borrow::Cow;

use utoipa::{
    OpenApi, PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{AnyOfBuilder, Type},
    },
};

use super::schema::{text_of, typed};
use crate::http::{refusal_response::Refusal, run_document::RunDocument};
use agui_base::RunErrorCode;
use agui_protocol::Event;

/// The schemas of responses that several handlers share.
#[derive(OpenApi)]
#[openapi(components(schemas(Event, Refusal<'static>, RunDocument, RunErrorCodes)))]
pub(super) struct SharedSchemas;

/// The schema of the codes of failed runs.
enum RunErrorCodes {}

impl PartialSchema for RunErrorCodes {
    fn schema() -> RefOr<Schema> {
        let own = text_of(RunErrorCode::ALL.iter().map(|code| code.as_str()))
            .description(Some("The codes of this server."));
        let others = "Codes that an agent or the endpoint of a remote agent chooses.";
        AnyOfBuilder::new().item(own).item(typed(Type::String).description(Some(others))).into()
    }
}

impl ToSchema for RunErrorCodes {
    fn name() -> Cow<'static, str> {
        "RunErrorCode".into()
    }
}
