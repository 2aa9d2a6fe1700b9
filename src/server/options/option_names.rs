//! The names of a struct's options and of an enum's values, as serde knows them. So no list has to agree with a struct.

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor, value::Error},
    forward_to_deserialize_any,
};

/// Returns the names of the options of a struct.
pub(super) fn option_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Reading always ends with an error, as soon as the names are known.
    let _ = T::deserialize(NameReader(&mut names));
    names
}

/// Returns the values of an enum without data, each with its name.
pub(super) fn named_values<T: DeserializeOwned>() -> impl Iterator<Item = (&'static str, T)> {
    let value = |name: &'static str| {
        T::deserialize(IntoDeserializer::<Error>::into_deserializer(name)).ok()
    };
    option_names::<T>().iter().filter_map(move |name| Some((*name, value(name)?)))
}

/// A source that has no value, and keeps the names that it is asked for.
struct NameReader<'n>(&'n mut &'static [&'static str]);

impl<'de> Deserializer<'de> for NameReader<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = names;
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = names;
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no value"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map identifier ignored_any
    }
}
