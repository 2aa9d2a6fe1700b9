//! Objects whose members the protocol describes, read by [`read_object`]. Other members are ignored and noted.

use std::{fmt, vec};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    path::JsonPath,
    value::{FromJson, ValueSeed},
};

/// The name of a member, made from the field's name at compile time.
pub(crate) struct MemberName {
    text: [u8; 32],
    len: usize,
}

impl MemberName {
    /// Converts `thread_id` to `threadId`.
    pub(crate) const fn from_field(field: &str) -> Self {
        let field = field.as_bytes();
        let mut name = Self { text: [0; 32], len: 0 };
        let mut at = 0;
        while at < field.len() {
            let begins_word = field[at] == b'_';
            at += begins_word as usize;
            name.text[name.len] =
                if begins_word { field[at].to_ascii_uppercase() } else { field[at] };
            name.len += 1;
            at += 1;
        }
        name
    }

    pub(crate) const fn as_str(&self) -> &str {
        match str::from_utf8(self.text.split_at(self.len).0) {
            Ok(name) => name,
            Err(_) => "",
        }
    }
}

/// Reads a struct, or a struct variant, from its [`Members`]: its fields, each with its presence (`required`, `optional`,
/// `defaulted` or `recognized`). A `recognized` member is required, and of a [`Tagged`](super::tagged::Tagged) type; the
/// whole object is ignored if the member's kind is unknown.
macro_rules! read_object {
    ($members:ident => $object:path { $($presence:ident $field:ident,)* }) => {{
        use $crate::decode::object::{MemberName, read_object};
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Member { $($field),* }
        const DESCRIBED: &[(&str, Member)] = &[$((read_object!(@name $field), Member::$field)),*];
        let mut members = $members;
        $(let mut $field = None;)*
        while let Some(member) = members.next(DESCRIBED)? {
            match member { $(Member::$field => members.read(read_object!(@name $field), &mut $field)?,)* }
        }
        $object { $($field: read_object!(@$presence $field members),)* }
    }};
    // `type` is a keyword of Rust.
    (@name kind) => { "type" };
    (@name $field:ident) => {{
        const NAME: &MemberName = &MemberName::from_field(stringify!($field));
        const TEXT: &str = NAME.as_str();
        TEXT
    }};
    (@required $field:ident $members:ident) => { $members.path.required($field, read_object!(@name $field))? };
    (@optional $field:ident $members:ident) => { $field };
    (@defaulted $field:ident $members:ident) => { $field.unwrap_or_default() };
    (@recognized $field:ident $members:ident) => {
        match read_object!(@required $field $members) {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}
pub(crate) use read_object;

/// An object whose members the protocol describes. [`wire_struct!`](crate::wire_struct) implements it.
pub(crate) trait WireObject: Sized {
    fn read<'de, A: MapAccess<'de>>(members: Members<'_, 'de, A>) -> Result<Self, A::Error>;
}

impl<'de, T: WireObject> FromJson<'de> for T {
    const EXPECTED: &'static str = "an object";
    fn from_null<E: Error>(path: JsonPath<'_>) -> Result<Option<Self>, E> {
        Err(path.unexpected(Self::EXPECTED, "null"))
    }
    fn from_object<A: MapAccess<'de>>(
        path: JsonPath<'_>,
        map: A,
    ) -> Result<Option<Self>, A::Error> {
        T::read(Members::new(path, map)).map(Some)
    }
}

/// A member that comes before the tag. Its value is read when the object's kind is known.
type EarlyMember<'de> = (String, &'de RawValue);

pub(crate) struct Members<'a, 'de, A> {
    pub(crate) path: JsonPath<'a>,
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
        Self {
            path,
            tag: None,
            early: Vec::new().into_iter(),
            early_value: None,
            is_snake_case: false,
            map,
        }
    }

    pub(super) fn after_tag(
        path: JsonPath<'a>,
        tag: &'static str,
        early: Vec<EarlyMember<'de>>,
        map: A,
    ) -> Self {
        Self { tag: Some(tag), early: early.into_iter(), ..Self::new(path, map) }
    }

    /// Moves to the next member that is one of `described`, and returns the key beside its name.
    /// SDKs in Python send names in snake case.
    pub(crate) fn next<M: Copy>(&mut self, described: &[(&str, M)]) -> Result<Option<M>, A::Error> {
        let (path, tag) = (self.path, self.tag);
        let find = |name: &str| {
            if let Some((_, member)) = described.iter().find(|(known, _)| *known == name) {
                return Ok(Some((*member, false)));
            }
            if let Some((_, member)) =
                described.iter().find(|(known, _)| is_snake_case_of(name, known))
            {
                path.diagnostics.snake_case.update(|count| count + 1);
                return Ok(Some((*member, true)));
            }
            if let Some(tag) = tag.filter(|tag| *tag == name) {
                return Err(path.member(tag).malformed("given twice"));
            }
            // Some clients send `forwardedProps` a second time as `data`.
            if !described.iter().any(|(known, _)| (name, *known) == ("data", "forwardedProps")) {
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
        while let Some(found) = self.map.next_key_seed(NameSeed(find))? {
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

    /// Reads the member that [`next`](Self::next) has moved to. The protocol's spelling wins over
    /// snake case.
    pub(crate) fn read<T: FromJson<'de>>(
        &mut self,
        name: &'static str,
        field: &mut Option<T>,
    ) -> Result<(), A::Error> {
        let seed = ValueSeed::at(self.path.member(name));
        let value = match self.early_value.take() {
            None => self.map.next_value_seed(seed)?,
            Some(json) => seed
                .deserialize(&mut serde_json::Deserializer::from_str(json.get()))
                .map_err(A::Error::custom)?,
        };
        if !self.is_snake_case || field.is_none() {
            *field = value;
        }
        Ok(())
    }
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

pub(super) struct NameSeed<F>(pub(super) F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for NameSeed<F> {
    type Value = T;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for NameSeed<F> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }
    fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
        Ok((self.0)(name))
    }
}
