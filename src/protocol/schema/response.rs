//! Schemas of the replies to interrupts, which agents write.

use serde_json::{Map, Value};

use super::{BoundedSchema, SchemaLimits, check_size, remove_unsupported_patterns};

/// Compiles the schema of a reply. The agent checks what the patterns that are left out would check.
///
/// # Errors
/// The limit that the schema exceeds, or the part that is invalid.
pub(crate) fn compile_response_schema(schema: &Map<String, Value>) -> Result<BoundedSchema, String> {
    let mut schema = Value::Object(schema.clone());
    check_size(&schema, SchemaLimits::INTERRUPT)?;
    remove_unsupported_patterns(&mut schema);
    BoundedSchema::new(&schema, SchemaLimits::INTERRUPT)
}
