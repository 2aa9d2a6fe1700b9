//! Objects whose members the protocol describes, read by [`read_object`]. Other members are ignored and noted.

use std::{fmt, vec};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    path::JsonPath,
    value::{FromJson, ValueSeed},
};

/// Reads a struct, or a struct variant, from its [`Members`]. One line describes one member: its presence (`required`,
/// `optional`, `defaulted` or `recognized`), its field, and its name in JSON. A `recognized` member is required, and of
/// a [`Tagged`](super::tagged::Tagged) type; the whole object is ignored if the member's kind is unknown.
macro_rules! read_object {
    ($members:ident => $object:path { $($presence:ident $field:ident = $name:literal,)* }) => {{
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Member { $($field),* }
        let mut members = $members;
        $(let mut $field = None;)*
        while let Some(member) = members.next(&[$(($name, Member::$field)),*])? {
            match member { $(Member::$field => members.read($name, &mut $field)?,)* }
        }
        $object { $($field: read_object!(@$presence $field, members.path, $name),)* }
    }};
    (@required $value:ident, $path:expr, $name:literal) => { $path.required($value, $name)? };
    (@optional $value:ident, $path:expr, $name:literal) => { $value };
    (@defaulted $value:ident, $path:expr, $name:literal) => { $value.unwrap_or_default() };
    (@recognized $value:ident, $path:expr, $name:literal) => {
        match $path.required($value, $name)? {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}
pub(super) use read_object;

/// Implements [`FromJson`] for structs, with their members as in [`read_object`].
macro_rules! objects {
    ($($object:ident { $($members:tt)* })*) => {$(
        impl<'de> $crate::protocol::decode::value::FromJson<'de> for $object {
            const EXPECTED: &'static str = "an object";
            fn from_null<E: serde::de::Error>(path: JsonPath<'_>) -> Result<Option<Self>, E> {
                Err(path.unexpected(Self::EXPECTED, "null"))
            }
            fn from_object<A: serde::de::MapAccess<'de>>(path: JsonPath<'_>, map: A) -> Result<Option<Self>, A::Error> {
                let members = Members::new(path, map);
                Ok(Some(read_object!(members => $object { $($members)* })))
            }
        }
    )*};
}
pub(super) use objects;

/// A member that comes before the tag. Its value is read when the object's kind is known.
type EarlyMember<'de> = (String, &'de RawValue);

pub(super) struct Members<'a, 'de, A> {
    pub(super) path: JsonPath<'a>,
    /// The member that named the object's kind. It is an error if it comes again.
    tag: Option<&'static str>,
    early: vec::IntoIter<EarlyMember<'de>>,
    early_value: Option<&'de RawValue>,
    /// True if the current member is spelled `in_snake_case`.
    is_snake_case: bool,
    map: A,
}

impl<'a, 'de, A: MapAccess<'de>> Members<'a, 'de, A> {
    pub(super) fn new(path: JsonPath<'a>, map: A) -> Self {
        Self { path, tag: None, early: Vec::new().into_iter(), early_value: None, is_snake_case: false, map }
    }

    pub(super) fn after_tag(path: JsonPath<'a>, tag: &'static str, early: Vec<EarlyMember<'de>>, map: A) -> Self {
        Self { tag: Some(tag), early: early.into_iter(), ..Self::new(path, map) }
    }

    /// Moves to the next member that is one of `described`, and returns the key beside its name. Names in snake case are
    /// those of SDKs in Python.
    pub(super) fn next<M: Copy>(&mut self, described: &[(&str, M)]) -> Result<Option<M>, A::Error> {
        let (path, tag) = (self.path, self.tag);
        let find = |name: &str| {
            if let Some((_, member)) = described.iter().find(|(known, _)| *known == name) {
                return Ok(Some((*member, false)));
            }
            if let Some((_, member)) = described.iter().find(|(known, _)| is_snake_case_of(name, known)) {
                path.diagnostics.count_snake_case();
                return Ok(Some((*member, true)));
            }
            if let Some(tag) = tag.filter(|tag| *tag == name) {
                return Err(path.member(tag).malformed("given twice"));
            }
            if !described.iter().any(|(known, _)| is_mirror_of(name, known)) {
                path.diagnostics.ignore_member(path, name);
            }
            Ok(None)
        };
        for (name, value) in self.early.by_ref() {
            if let Some((member, is_snake_case)) = find(&name)? {
                (self.early_value, self.is_snake_case) = (Some(value), is_snake_case);
                return Ok(Some(member));
            }
        }
        while let Some(found) = self.map.next_key_seed(MemberName(find))? {
            match found? {
                Some((member, is_snake_case)) => {
                    self.is_snake_case = is_snake_case;
                    return Ok(Some(member));
                }
                None => self.map.next_value::<IgnoredAny>()?,
            };
        }
        Ok(None)
    }

    /// Reads the member that [`next`](Self::next) has moved to. A name in snake case gives way to the protocol's.
    pub(super) fn read<T: FromJson<'de>>(&mut self, name: &'static str, field: &mut Option<T>) -> Result<(), A::Error> {
        let value = self.value(name)?;
        if !self.is_snake_case || field.is_none() {
            *field = value;
        }
        Ok(())
    }

    fn value<T: FromJson<'de>>(&mut self, name: &'static str) -> Result<Option<T>, A::Error> {
        let seed = ValueSeed::at(self.path.member(name));
        match self.early_value.take() {
            None => self.map.next_value_seed(seed),
            Some(json) => {
                seed.deserialize(&mut serde_json::Deserializer::from_str(json.get())).map_err(A::Error::custom)
            }
        }
    }
}

/// TanStack AI sends `forwardedProps` a second time as `data`.
fn is_mirror_of(name: &str, known: &str) -> bool {
    (name, known) == ("data", "forwardedProps")
}

fn is_snake_case_of(name: &str, camel_case: &str) -> bool {
    let mut rest = name.chars();
    name.contains('_')
        && camel_case.chars().all(|c| match c.is_ascii_uppercase() {
            true => rest.next() == Some('_') && rest.next() == Some(c.to_ascii_lowercase()),
            false => rest.next() == Some(c),
        })
        && rest.next().is_none()
}

pub(super) struct MemberName<F>(pub(super) F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for MemberName<F> {
    type Value = T;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for MemberName<F> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }
    fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
        Ok((self.0)(name))
    }
}
