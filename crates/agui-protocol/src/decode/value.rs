//! Reads one JSON value into a type: [`FromJson`] says which JSON types it accepts, [`ValueSeed`] passes the value to
//! it. Objects that the protocol describes are in [`object`](super::object) and [`tagged`](super::tagged).

use std::{fmt, marker::PhantomData};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor,
    value::{Error as NameError, StrDeserializer},
};
use serde_json::{Map, Number, Value};

use super::path::JsonPath;
use crate::{
    InterruptId, JsonObject, MessageId, Metadata, ResumeStatus, RunId, SubagentRunId, ThreadId,
    ToolCallId, ToolCallKind,
};

/// `Ok(None)` means that the value counts as absent, as `null` does unless a type says otherwise.
pub(crate) trait FromJson<'de>: Sized {
    /// The accepted JSON types, for the error `expected …, found …`.
    const EXPECTED: &'static str;
    /// `true` if each value counts towards [`MAX_OPEN_VALUES`](super::MAX_OPEN_VALUES).
    const IS_OPEN: bool = false;

    fn from_null<E: Error>(_: JsonPath<'_>) -> Result<Option<Self>, E> {
        Ok(None)
    }
    fn from_bool<E: Error>(path: JsonPath<'_>, _: bool) -> Result<Option<Self>, E> {
        Err(path.unexpected(Self::EXPECTED, "a boolean"))
    }
    fn from_number<E: Error>(path: JsonPath<'_>, _: Number) -> Result<Option<Self>, E> {
        Err(path.unexpected(Self::EXPECTED, "a number"))
    }
    fn from_text<E: Error>(path: JsonPath<'_>, _: &str) -> Result<Option<Self>, E> {
        Err(path.unexpected(Self::EXPECTED, "a string"))
    }
    fn from_list<A: SeqAccess<'de>>(path: JsonPath<'_>, _: A) -> Result<Option<Self>, A::Error> {
        Err(path.unexpected(Self::EXPECTED, "an array"))
    }
    fn from_object<A: MapAccess<'de>>(path: JsonPath<'_>, _: A) -> Result<Option<Self>, A::Error> {
        Err(path.unexpected(Self::EXPECTED, "an object"))
    }
}

pub(super) struct ValueSeed<'a, T>(JsonPath<'a>, PhantomData<T>);

impl<'a, T> ValueSeed<'a, T> {
    pub(super) fn at(path: JsonPath<'a>) -> Self {
        Self(path, PhantomData)
    }
}

impl<'de, T: FromJson<'de>> DeserializeSeed<'de> for ValueSeed<'_, T> {
    type Value = Option<T>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        if T::IS_OPEN {
            self.0.count_open_value()?;
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: FromJson<'de>> Visitor<'de> for ValueSeed<'_, T> {
    type Value = Option<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        T::from_null(self.0)
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Option<T>, E> {
        T::from_bool(self.0, value)
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Option<T>, E> {
        T::from_number(self.0, value.into())
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Option<T>, E> {
        T::from_number(self.0, value.into())
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Option<T>, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("not a finite number"))?;
        T::from_number(self.0, number)
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Option<T>, E> {
        T::from_text(self.0, text)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Option<T>, A::Error> {
        T::from_list(self.0, items)
    }
    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Option<T>, A::Error> {
        T::from_object(self.0, members)
    }
}

macro_rules! text_types {
    ($($name:ident)*) => {$(
        impl<'de> FromJson<'de> for $name {
            const EXPECTED: &'static str = "a string";
            fn from_text<E: Error>(_: JsonPath<'_>, text: &str) -> Result<Option<Self>, E> {
                Ok(Some(text.into()))
            }
        }
    )*};
}
text_types! { String InterruptId MessageId RunId SubagentRunId ThreadId ToolCallId }

macro_rules! text_enums {
    ($($name:ident: $expected:literal;)*) => {$(
        impl<'de> FromJson<'de> for $name {
            const EXPECTED: &'static str = "a string";
            fn from_text<E: Error>(path: JsonPath<'_>, text: &str) -> Result<Option<Self>, E> {
                let variant = from_name(text).ok_or_else(|| path.malformed(concat!("expected ", $expected)))?;
                Ok(Some(variant))
            }
        }
    )*};
}
text_enums! {
    ResumeStatus: "\"resolved\" or \"cancelled\"";
    ToolCallKind: "\"function\"";
}

/// Returns the variant that has this name in JSON.
pub(super) fn from_name<'de, T: Deserialize<'de>>(name: &'de str) -> Option<T> {
    T::deserialize(StrDeserializer::<NameError>::new(name)).ok()
}

impl<'de, T: FromJson<'de>> FromJson<'de> for Vec<T> {
    const EXPECTED: &'static str = "an array";
    fn from_list<A: SeqAccess<'de>>(
        path: JsonPath<'_>,
        items: A,
    ) -> Result<Option<Self>, A::Error> {
        let mut list = Self::new();
        read_items(path, items, |item| list.push(item))?;
        Ok(Some(list))
    }
}

pub(super) fn read_items<'de, T: FromJson<'de>, A: SeqAccess<'de>>(
    path: JsonPath<'_>,
    mut items: A,
    mut push: impl FnMut(T),
) -> Result<(), A::Error> {
    let mut index = 0;
    while let Some(item) = items.next_element_seed(ValueSeed::at(path.item(index)))? {
        if let Some(item) = item {
            push(item);
        }
        index += 1;
    }
    Ok(())
}

/// Any JSON. A `null` in place of the whole value reads as absent; a `null` inside of it is data.
impl<'de> FromJson<'de> for Value {
    const EXPECTED: &'static str = "any JSON";
    const IS_OPEN: bool = true;

    fn from_bool<E: Error>(_: JsonPath<'_>, value: bool) -> Result<Option<Self>, E> {
        Ok(Some(Self::Bool(value)))
    }
    fn from_number<E: Error>(_: JsonPath<'_>, value: Number) -> Result<Option<Self>, E> {
        Ok(Some(Self::Number(value)))
    }
    fn from_text<E: Error>(_: JsonPath<'_>, text: &str) -> Result<Option<Self>, E> {
        Ok(Some(Self::String(text.to_owned())))
    }
    fn from_list<A: SeqAccess<'de>>(
        path: JsonPath<'_>,
        mut items: A,
    ) -> Result<Option<Self>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(ValueSeed::<Self>::at(path))? {
            list.push(item.unwrap_or_default());
        }
        Ok(Some(Self::Array(list)))
    }
    fn from_object<A: MapAccess<'de>>(
        path: JsonPath<'_>,
        members: A,
    ) -> Result<Option<Self>, A::Error> {
        Ok(JsonObject::from_object(path, members)?.map(Self::Object))
    }
}

impl<'de> FromJson<'de> for JsonObject {
    const EXPECTED: &'static str = "an object";
    fn from_object<A: MapAccess<'de>>(
        path: JsonPath<'_>,
        mut members: A,
    ) -> Result<Option<Self>, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(ValueSeed::<Value>::at(path))?;
            object.insert(name, value.unwrap_or_default());
        }
        Ok(Some(object))
    }
}

impl<'de> FromJson<'de> for Metadata {
    const EXPECTED: &'static str = "an object";
    fn from_object<A: MapAccess<'de>>(
        path: JsonPath<'_>,
        members: A,
    ) -> Result<Option<Self>, A::Error> {
        Ok(JsonObject::from_object(path, members)?.map(Self::from))
    }
}
