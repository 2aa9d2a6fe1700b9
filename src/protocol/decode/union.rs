//! Unions told apart by one member: messages by `role`, content parts and their sources by `type`.
//!
//! JSON objects have no order, so the telling member may come last; what came before it is kept as a
//! slice of the input and read when it is clear what it has to be. Only the `id`, which usually does
//! come first, is read at once: it is a text in every kind. A member that the union describes for
//! another of its kinds only is as unknown as any other.

use std::{fmt, marker::PhantomData};

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    at::At,
    object::MemberName,
    value::{Item, refuse, skip},
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
    /// Takes the `id`, before the kind is known.
    fn set_id(&mut self, id: &str);
    /// Notes that an object of an unknown kind is left out.
    fn note_unknown(at: &At<'_>, kind: &str);
    /// How many of them a list of a body of this length probably has.
    fn expected(_body_len: usize) -> usize {
        0
    }
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
        let mut wrong_id = None;
        while let Some(known) = members.next_key_seed(MemberName { at: &at, names: U::MEMBERS })? {
            match (known, kind) {
                (None, _) => skip(&mut members)?,
                (Some(0), _) => {
                    kind = members.next_value_seed(KindName::<U>(at, PhantomData))?;
                    if kind.is_none() {
                        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        return Ok(None);
                    }
                }
                (Some(index), None) if U::MEMBERS[index] == "id" => {
                    wrong_id = members.next_value_seed(EarlyId(&mut union))?;
                }
                (Some(index), None) => kept[index] = Some(members.next_value::<&RawValue>()?),
                (Some(index), Some(kind)) => read(&mut union, kind, index, &at, Next(&mut members))?,
            }
        }
        let kind = at.required(kind, U::MEMBERS[0])?;
        if let Some(found) = wrong_id {
            return Err(at.member("id").unexpected("a string", found));
        }
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

/// Reads the member that tells the kinds apart; `None`, after noting it, for a kind nobody knows.
struct KindName<'a, U>(At<'a>, PhantomData<U>);

impl<'de, U: Union<'de>> DeserializeSeed<'de> for KindName<'_, U> {
    type Value = Option<U::Kind>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let place = self.0.member(U::MEMBERS[0]);
        deserializer.deserialize_any(KindVisitor::<U>(place, self.0, PhantomData))
    }
}

struct KindVisitor<'a, U>(At<'a>, At<'a>, PhantomData<U>);

impl<'de, U: Union<'de>> Visitor<'de> for KindVisitor<'_, U> {
    type Value = Option<U::Kind>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let kind = U::kind(text);
        if kind.is_none() {
            U::note_unknown(&self.1, text);
        }
        Ok(kind)
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Err(self.0.fault("missing"))
    }
    refuse!("a string"; bool number list object);
}

/// Reads an `id` of an object that may yet turn out to be of no known kind, and then it does not matter
/// what its `id` is. Answers what is there instead of a text.
struct EarlyId<'u, U>(&'u mut U);

impl<'de, U: Union<'de>> DeserializeSeed<'de> for EarlyId<'_, U> {
    type Value = Option<&'static str>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, U: Union<'de>> Visitor<'de> for EarlyId<'_, U> {
    type Value = Option<&'static str>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        self.0.set_id(text);
        Ok(None)
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Some("a boolean"))
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Some("a number"))
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Some("a number"))
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Some("a number"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some("an array"))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Some("an object"))
    }
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

    fn expected(&self, body_len: usize) -> usize {
        U::expected(body_len)
    }
}
