//! Objects of several kinds, which one member tells apart: messages by `role`, content parts and sources by `type`.
//!
//! JSON objects have no order, so the tag may come last. Members before it are kept as slices of the input, and read
//! when the tag has named the kind.

use serde::de::{Error, IgnoredAny, MapAccess};

use super::{
    diagnostics::Ignored,
    object::{Members, NameSeed},
    path::JsonPath,
    value::{FromJson, ValueSeed},
};

/// Maximum number of members before the tag, beside an `id`. Bounds the memory for keeping them.
const MAX_EARLY_MEMBERS: usize = 1000;

/// A type whose kinds are told apart by a tag. It is read as `Option<Self>`: `None` is an object of an unknown kind.
pub(super) trait Tagged: Sized {
    const TAG: &'static str;
    /// The count of objects of an unknown kind.
    const IGNORED: fn(&mut Ignored) -> &mut usize;
    type Kind: Copy;

    fn kind(tag: &str) -> Option<Self::Kind>;
    fn read<'de, A: MapAccess<'de>>(
        kind: Self::Kind,
        members: Members<'_, 'de, A>,
    ) -> Result<Option<Self>, A::Error>;
}

impl<'de, T: Tagged> FromJson<'de> for Option<T> {
    const EXPECTED: &'static str = "an object";

    fn from_null<E: Error>(path: JsonPath<'_>) -> Result<Option<Self>, E> {
        Err(path.unexpected(Self::EXPECTED, "null"))
    }

    fn from_object<A: MapAccess<'de>>(
        path: JsonPath<'_>,
        mut map: A,
    ) -> Result<Option<Self>, A::Error> {
        let mut early = Vec::new();
        let early_name = |name: &str| (name != T::TAG).then(|| name.to_owned());
        while let Some(name) = map.next_key_seed(NameSeed(early_name))? {
            if let Some(name) = name {
                if early.len() > MAX_EARLY_MEMBERS {
                    return Err(path.malformed(format!(
                        "more than {MAX_EARLY_MEMBERS} members before {:?}",
                        T::TAG
                    )));
                }
                early.push((name, map.next_value()?));
                continue;
            }
            let tag = map.next_value_seed(ValueSeed::<Tag<T>>::at(path.member(T::TAG)))?;
            if let Tag(Some(kind)) = path.required(tag, T::TAG)? {
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
            path.diagnostics.ignore_item(T::IGNORED, path.parent(), T::TAG, tag);
        }
        Ok(Some(Self(kind)))
    }
}
