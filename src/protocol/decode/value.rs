//! Seeds for single values: text, flags, open JSON, lists.

use std::{fmt, marker::PhantomData};

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{DecodeError, at::At};
use crate::protocol::JsonObject;

/// The kinds of JSON value a visitor did not ask for, each turned into a fault.
macro_rules! refuse {
    ($expected:expr; $($method:ident)*) => { $(refuse!(@ $method $expected);)* };
    (@ bool $e:expr) => { fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> { Err(self.0.unexpected($e, "a boolean")) } };
    (@ number $e:expr) => {
        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> { Err(self.0.unexpected($e, "a number")) }
        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> { Err(self.0.unexpected($e, "a number")) }
        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> { Err(self.0.unexpected($e, "a number")) }
    };
    (@ text $e:expr) => { fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> { Err(self.0.unexpected($e, "a string")) } };
    (@ list $e:expr) => { fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> { Err(self.0.unexpected($e, "an array")) } };
    (@ object $e:expr) => { fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> { Err(self.0.unexpected($e, "an object")) } };
}
pub(super) use refuse;

/// Text, as whatever type keeps it; `null` reads as absent.
pub(super) struct Text<'a, T>(At<'a>, PhantomData<T>);

impl<'a, T> Text<'a, T> {
    pub(super) fn at(at: At<'a>) -> Self {
        Self(at, PhantomData)
    }
}

impl<'de, T: for<'t> From<&'t str> + From<String>> DeserializeSeed<'de> for Text<'_, T> {
    type Value = Option<T>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: for<'t> From<&'t str> + From<String>> Visitor<'de> for Text<'_, T> {
    type Value = Option<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.into()))
    }
    fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Some(text.into()))
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    refuse!("a string"; bool number list object);
}

/// A list whose items are read by a seed of their own; `null` reads as absent, items that answer `None` are left out.
pub(super) struct List<'a, F>(pub(super) At<'a>, pub(super) F);

/// What makes the seed of a list's item at a place.
pub(super) trait Item<'de> {
    type Value;
    fn read<A: SeqAccess<'de>>(&self, at: At<'_>, items: &mut A) -> Result<Option<Option<Self::Value>>, A::Error>;
    /// How many items to make room for, given the length of the whole body.
    fn expected(&self, _body_len: usize) -> usize {
        0
    }
}

impl<'de, I: Item<'de>> DeserializeSeed<'de> for List<'_, I> {
    type Value = Option<Vec<I::Value>>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, I: Item<'de>> Visitor<'de> for List<'_, I> {
    type Value = Option<Vec<I::Value>>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::with_capacity(self.1.expected(self.0.log.body_len()));
        let mut index = 0;
        while let Some(item) = self.1.read(self.0.index(index), &mut items)? {
            list.extend(item);
            index += 1;
        }
        Ok(Some(list))
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    refuse!("an array"; bool number text object);
}

/// An open object such as metadata; `null` reads as absent.
pub(super) struct OpenObject<'a>(pub(super) At<'a>);

impl<'de> DeserializeSeed<'de> for OpenObject<'_> {
    type Value = Option<JsonObject>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OpenObject<'_> {
    type Value = Option<JsonObject>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Json(self.0).visit_map(map).map(|value| match value {
            Value::Object(object) => Some(object),
            _ => None,
        })
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    refuse!("an object"; bool number text list);
}

/// Any JSON in an optional position: a whole `null` reads as absent, nulls inside are data.
pub(super) struct OptionalJson<'a>(pub(super) At<'a>);

impl<'de> DeserializeSeed<'de> for OptionalJson<'_> {
    type Value = Option<Value>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        Json(self.0).deserialize(deserializer).map(|value| Some(value).filter(|value| !value.is_null()))
    }
}

/// Any JSON. serde_json's own reader could do it, but counts nothing.
#[derive(Clone, Copy)]
struct Json<'a>(At<'a>);

impl Json<'_> {
    fn count<E: de::Error>(&self) -> Result<(), E> {
        if self.0.log.open_value() {
            self.0.log.fault(|| DecodeError::TooManyValues { path: self.0.path() });
            return Err(E::custom("too many values"));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Json<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Json<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

/// Skips a value that nobody described.
pub(super) fn skip<'de, A: MapAccess<'de>>(members: &mut A) -> Result<(), A::Error> {
    members.next_value::<IgnoredAny>().map(drop)
}
