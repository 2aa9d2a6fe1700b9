//! Unions told apart by one member: messages by `role`, content parts and their sources by `type`.
//!
//! JSON objects have no order, so the telling member may come last; what came before it is kept as a
//! slice of the input and read when it is clear what it has to be. A member that the union describes
//! for another of its kinds only is as unknown as any other.

use std::{fmt, marker::PhantomData};

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    at::At,
    object::MemberName,
    value::{Item, Text, refuse, skip},
};

/// How many members the largest union describes.
const MOST_MEMBERS: usize = 12;

/// One of several kinds of object, under construction.
pub(super) trait Union<'de>: Default {
    /// What it becomes.
    type Value;
    /// Which of its kinds it is.
    type Kind: Copy;
    /// The names of all kinds' members; the first one tells the kinds apart.
    const MEMBERS: &'static [&'static str];

    /// The kind that a text names, if this version of the protocol knows it.
    fn kind(text: &str) -> Option<Self::Kind>;
    /// Whether a kind has a member.
    fn describes(kind: Self::Kind, member: &str) -> bool;
    /// Reads one member; `at` is the member's place.
    fn set<R: ReadValue<'de>>(&mut self, kind: Self::Kind, member: &str, at: At<'_>, value: R) -> Result<(), R::Error>;
    /// Everything is read; `at` is the object's place. `None` leaves the object out.
    fn build<E: de::Error>(self, kind: Self::Kind, at: At<'_>) -> Result<Option<Self::Value>, E>;
    /// Notes that an object of an unknown kind is left out.
    fn note_unknown(at: &At<'_>, kind: &str);
}

/// A member's value: the next one of the input, or one that was kept.
pub(super) trait ReadValue<'de> {
    type Error: de::Error;
    fn read<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Self::Error>;
}

struct Next<'m, A>(&'m mut A);

impl<'de, A: MapAccess<'de>> ReadValue<'de> for Next<'_, A> {
    type Error = A::Error;
    fn read<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

struct Kept<'de, E>(&'de RawValue, PhantomData<E>);

impl<'de, E: de::Error> ReadValue<'de> for Kept<'de, E> {
    type Error = E;
    fn read<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, E> {
        seed.deserialize(&mut serde_json::Deserializer::from_str(self.0.get())).map_err(E::custom)
    }
}

/// Reads a [`Union`]; `None` is one that is left out.
pub(super) struct OneOf<'a, U>(At<'a>, PhantomData<U>);

impl<'a, U> OneOf<'a, U> {
    pub(super) fn at(at: At<'a>) -> Self {
        Self(at, PhantomData)
    }
}

impl<'de, U: Union<'de>> DeserializeSeed<'de> for OneOf<'_, U> {
    type Value = Option<U::Value>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, U: Union<'de>> Visitor<'de> for OneOf<'_, U> {
    type Value = Option<U::Value>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let at = self.0;
        let mut union = U::default();
        let mut kind = None;
        let mut kept = [None; MOST_MEMBERS];
        while let Some(known) = members.next_key_seed(MemberName { at: &at, names: U::MEMBERS })? {
            match (known, kind) {
                (None, _) => skip(&mut members)?,
                (Some(0), _) => {
                    let place = at.member(U::MEMBERS[0]);
                    let named: Option<String> = members.next_value_seed(Text::at(place))?;
                    let named = named.ok_or_else(|| place.fault::<A::Error>("missing"))?;
                    kind = U::kind(&named);
                    if kind.is_none() {
                        U::note_unknown(&at, &named);
                        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        return Ok(None);
                    }
                }
                (Some(index), None) => kept[index] = Some(members.next_value::<&RawValue>()?),
                (Some(index), Some(kind)) => read(&mut union, kind, index, &at, Next(&mut members))?,
            }
        }
        let kind = at.required(kind, U::MEMBERS[0])?;
        for (index, value) in kept.into_iter().enumerate() {
            if let Some(value) = value {
                read(&mut union, kind, index, &at, Kept::<A::Error>(value, PhantomData))?;
            }
        }
        union.build(kind, at)
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Err(self.0.unexpected("an object", "null"))
    }
    refuse!("an object"; bool number text list);
}

fn read<'de, U: Union<'de>, R: ReadValue<'de>>(
    union: &mut U,
    kind: U::Kind,
    index: usize,
    at: &At<'_>,
    value: R,
) -> Result<(), R::Error> {
    let member = U::MEMBERS[index];
    if U::describes(kind, member) {
        union.set(kind, member, at.member(member), value)
    } else {
        at.log.drop_member(at, member);
        struct Skip;
        impl<'de> DeserializeSeed<'de> for Skip {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.deserialize_ignored_any(IgnoredAny).map(drop)
            }
        }
        value.read(Skip)
    }
}

/// A list of [`Union`]s.
pub(super) struct EachOneOf<U>(PhantomData<U>);

impl<U> EachOneOf<U> {
    pub(super) const OF: Self = Self(PhantomData);
}

impl<'de, U: Union<'de>> Item<'de> for EachOneOf<U> {
    type Value = U::Value;
    fn read<A: SeqAccess<'de>>(&self, at: At<'_>, items: &mut A) -> Result<Option<Option<U::Value>>, A::Error> {
        items.next_element_seed(OneOf::<U>::at(at))
    }
}
