//! Short forms of utoipa's builders, for schemas without a type.

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, RefBuilder, Type};

pub(crate) fn typed(schema_type: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(schema_type)
}

/// One of these texts.
pub(crate) fn text_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> ObjectBuilder {
    typed(Type::String).enum_values(Some(texts.into_iter().map(Value::from)))
}

/// A component of the document.
pub(crate) fn component(name: &str) -> RefBuilder {
    RefBuilder::new().ref_location_from_schema_name(name)
}
