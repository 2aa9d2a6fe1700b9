//! Objects of several kinds, which one member tells apart: messages by `role`, content parts and sources by `type`.
//!
//! JSON objects have no order, so the tag may come last. Members before it are kept as slices of the input, and read
//! when the tag has named the kind. An `id`, which most clients write first, is read at once and without an allocation:
//! a history of short messages takes 7 % longer without that.

use std::borrow::Cow;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess};
use serde_json::Number;

use super::{
    object::{EarlyValue, MemberName, Members},
    path::JsonPath,
    value::{FromJson, ValueSeed},
};

/// Maximum number of members before the tag. Bounds the memory for keeping them.
const MAX_EARLY_MEMBERS: usize = 1000;

/// A type whose kinds are told apart by a tag. It is read as `Option<Self>`: `None` is an object of an unknown kind.
pub(super) trait Tagged: Sized {
    const TAG: &'static str;
    type Kind: Copy;

    fn kind(tag: &str) -> Option<Self::Kind>;
    fn read<'de, A: MapAccess<'de>>(kind: Self::Kind, members: Members<'_, 'de, A>) -> Result<Option<Self>, A::Error>;
    fn note_ignored(path: JsonPath<'_>, tag: &str);
}

impl<'de, T: Tagged> FromJson<'de> for Option<T> {
    const EXPECTED: &'static str = "an object";

    fn from_null<E: Error>(path: JsonPath<'_>) -> Result<Option<Self>, E> {
        Err(path.unexpected(Self::EXPECTED, "null"))
    }

    fn from_object<A: MapAccess<'de>>(path: JsonPath<'_>, mut map: A) -> Result<Option<Self>, A::Error> {
        let (mut first, mut rest) = (None, Vec::new());
        let early_name = |name: &str| match name {
            _ if name == T::TAG => None,
            "id" => Some(Cow::Borrowed("id")),
            _ => Some(Cow::Owned(name.to_owned())),
        };
        while let Some(name) = map.next_key_seed(MemberName(early_name))? {
            if let Some(name) = name {
                let value = match &*name {
                    "id" => map.next_value_seed(ValueSeed::at(path))?,
                    _ => Some(EarlyValue::Json(map.next_value()?)),
                };
                let member = value.map(|value| (name, value));
                if first.is_none() {
                    first = member;
                } else if rest.len() < MAX_EARLY_MEMBERS {
                    rest.extend(member);
                } else {
                    let problem = format!("more than {MAX_EARLY_MEMBERS} members before {:?}", T::TAG);
                    return Err(path.malformed(problem));
                }
                continue;
            }
            let tag = map.next_value_seed(ValueSeed::<Tag<T>>::at(path.member(T::TAG)))?;
            if let Tag(Some(kind)) = path.required(tag, T::TAG)? {
                let early = first.into_iter().chain(rest);
                return T::read(kind, Members::after_tag(path, T::TAG, early, map)).map(Some);
            }
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Some(None));
        }
        Err(path.member(T::TAG).malformed("missing"))
    }
}

/// The kind that a tag names; `None` after noting that it is unknown.
struct Tag<T: Tagged>(Option<T::Kind>);

impl<'de, T: Tagged> FromJson<'de> for Tag<T> {
    const EXPECTED: &'static str = "a string";
    fn from_text<E: Error>(path: JsonPath<'_>, tag: &str) -> Result<Option<Self>, E> {
        let kind = T::kind(tag);
        if kind.is_none() {
            T::note_ignored(*path.parent(), tag);
        }
        Ok(Some(Self(kind)))
    }
}

/// An early `id`: a string in every kind of object that has one.
impl<'de> FromJson<'de> for EarlyValue<'de> {
    const EXPECTED: &'static str = "a string";

    fn from_bool<E: Error>(_: JsonPath<'_>, _: bool) -> Result<Option<Self>, E> {
        Ok(Some(Self::NoText("a boolean")))
    }
    fn from_number<E: Error>(_: JsonPath<'_>, _: Number) -> Result<Option<Self>, E> {
        Ok(Some(Self::NoText("a number")))
    }
    fn from_text<E: Error>(_: JsonPath<'_>, text: &str) -> Result<Option<Self>, E> {
        Ok(Some(Self::Text(text.to_owned().into())))
    }
    fn from_borrowed_text<E: Error>(_: JsonPath<'_>, text: &'de str) -> Result<Option<Self>, E> {
        Ok(Some(Self::Text(text.into())))
    }
    fn from_list<A: SeqAccess<'de>>(_: JsonPath<'_>, mut items: A) -> Result<Option<Self>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(Self::NoText("an array")))
    }
    fn from_object<A: MapAccess<'de>>(_: JsonPath<'_>, mut members: A) -> Result<Option<Self>, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Some(Self::NoText("an object")))
    }
}
