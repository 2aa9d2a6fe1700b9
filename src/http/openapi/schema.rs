//! Short forms of utoipa's builders of schemas.

use serde_json::Value;
use utoipa::openapi::{
    RefOr, Schema,
    schema::{
        AdditionalProperties, ArrayBuilder, Discriminator, ObjectBuilder, OneOfBuilder, RefBuilder, SchemaFormat,
        SchemaType, Type,
    },
};

/// A schema, or a reference to one of the document's components.
pub(super) type AnySchema = RefOr<Schema>;

/// A schema and its name.
pub(super) type Named = (String, AnySchema);

pub(super) fn named(name: &str, schema: impl Into<AnySchema>) -> Named {
    (name.to_owned(), schema.into())
}

/// Adds a description to a schema.
pub(super) trait Describe {
    fn says(self, text: &str) -> Self;
}

macro_rules! describe {
    ($($builder:ident)*) => {
        $(impl Describe for $builder {
            fn says(self, text: &str) -> Self {
                self.description(Some(text))
            }
        })*
    };
}

describe! { ArrayBuilder ObjectBuilder OneOfBuilder RefBuilder }

/// Adds members to the schema of an object.
pub(super) trait SchemaMembers {
    /// Adds a member that is always present.
    fn has(self, name: &str, schema: impl Into<AnySchema>) -> Self;

    /// Adds a member that may be absent.
    fn may_have(self, name: &str, schema: impl Into<AnySchema>) -> Self;
}

impl SchemaMembers for ObjectBuilder {
    fn has(self, name: &str, schema: impl Into<AnySchema>) -> Self {
        self.property(name, schema).required(name)
    }

    fn may_have(self, name: &str, schema: impl Into<AnySchema>) -> Self {
        self.property(name, schema)
    }
}

fn typed(schema_type: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(schema_type)
}

/// Any JSON value.
pub(super) fn any() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue)
}

pub(super) fn boolean() -> ObjectBuilder {
    typed(Type::Boolean)
}

pub(super) fn integer() -> ObjectBuilder {
    typed(Type::Integer)
}

/// An integer from 0 on.
pub(super) fn count() -> ObjectBuilder {
    integer().minimum(Some(0))
}

pub(super) fn number() -> ObjectBuilder {
    typed(Type::Number)
}

/// An object. Without [`SchemaMembers`], one with any members.
pub(super) fn object() -> ObjectBuilder {
    typed(Type::Object)
}

/// An object whose members are named by the data.
pub(super) fn map_of(values: impl Into<AnySchema>) -> ObjectBuilder {
    object().additional_properties(Some(AdditionalProperties::from(values.into())))
}

pub(super) fn list_of(items: impl Into<AnySchema>) -> ArrayBuilder {
    ArrayBuilder::new().items(items.into())
}

pub(super) fn text() -> ObjectBuilder {
    typed(Type::String)
}

pub(super) fn text_or_null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

/// A time such as `2026-01-31T12:00:00.000Z`.
pub(super) fn time() -> ObjectBuilder {
    text().format(Some(SchemaFormat::Custom("date-time".to_owned())))
}

/// One of these texts.
pub(super) fn text_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> ObjectBuilder {
    text().enum_values(Some(texts.into_iter().map(Value::from)))
}

/// A component of the document.
pub(super) fn component(name: &str) -> RefBuilder {
    RefBuilder::new().ref_location_from_schema_name(name)
}

pub(super) fn one_of(schemas: impl IntoIterator<Item = AnySchema>) -> OneOfBuilder {
    schemas.into_iter().fold(OneOfBuilder::new(), OneOfBuilder::item)
}

pub(super) fn or_null(schema: impl Into<AnySchema>) -> OneOfBuilder {
    one_of([schema.into(), typed(Type::Null).into()])
}

/// One of these components. The value of `member` decides which.
pub(super) fn tagged<'a>(member: &str, variants: impl IntoIterator<Item = (&'a str, String)>) -> OneOfBuilder {
    let variants: Vec<_> = variants.into_iter().collect();
    let mapping = variants.iter().map(|(value, name)| (*value, format!("#/components/schemas/{name}")));
    let discriminator = Discriminator::with_mapping(member, mapping);
    one_of(variants.iter().map(|(_, name)| component(name).into())).discriminator(Some(discriminator))
}
