//! The JSON Schema of `profile` in a configuration.

use super::{KnownModels, ProfileOptions};

/// The JSON Schema of `profile` in a configuration.
pub(crate) struct ProfileNameOrTable;

impl schemars::JsonSchema for ProfileNameOrTable {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProfileNameOrTable".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let known = KnownModels::default();
        let names = serde_json::json!(known.0.profiles.keys().collect::<Vec<_>>());
        let mut table = generator.subschema_for::<ProfileOptions>().to_value();
        table["properties"]["base"]["enum"] = names.clone();
        schemars::json_schema!({ "anyOf": [{ "type": "string", "enum": names }, table] })
    }
}
