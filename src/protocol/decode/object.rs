//! Objects that the protocol closes: their described members are read, all others dropped and noted.

use std::{fmt, marker::PhantomData};

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{
    at::At,
    value::{Item, refuse, skip},
};

/// A closed object under construction.
pub(super) trait Shape<'de>: Default {
    /// What it becomes.
    type Value;
    /// The names of its members. [`set`](Self::set) is called with an index into them.
    const MEMBERS: &'static [&'static str];
    /// Reads one member; `at` is the member's place.
    fn set<A: MapAccess<'de>>(&mut self, member: usize, at: At<'_>, members: &mut A) -> Result<(), A::Error>;
    /// Everything is read; `at` is the object's place.
    fn build<E: de::Error>(self, at: At<'_>) -> Result<Self::Value, E>;
}

/// Reads a [`Shape`].
pub(super) struct Object<'a, S>(At<'a>, PhantomData<S>);

impl<'a, S> Object<'a, S> {
    pub(super) fn at(at: At<'a>) -> Self {
        Self(at, PhantomData)
    }
}

impl<'de, S: Shape<'de>> DeserializeSeed<'de> for Object<'_, S> {
    type Value = S::Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: Shape<'de>> Visitor<'de> for Object<'_, S> {
    type Value = S::Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<S::Value, A::Error> {
        let mut shape = S::default();
        while let Some(known) = members.next_key_seed(MemberName { at: &self.0, names: S::MEMBERS })? {
            match known {
                Some(index) => shape.set(index, self.0.member(S::MEMBERS[index]), &mut members)?,
                None => skip(&mut members)?,
            }
        }
        shape.build(self.0)
    }
    fn visit_unit<E: de::Error>(self) -> Result<S::Value, E> {
        Err(self.0.unexpected("an object", "null"))
    }
    refuse!("an object"; bool number text list);
}

/// A list of [`Shape`]s.
pub(super) struct Objects<S>(PhantomData<S>);

impl<S> Objects<S> {
    pub(super) const OF: Self = Self(PhantomData);
}

impl<'de, S: Shape<'de>> Item<'de> for Objects<S> {
    type Value = S::Value;
    fn read<A: SeqAccess<'de>>(&self, at: At<'_>, items: &mut A) -> Result<Option<Option<S::Value>>, A::Error> {
        Ok(items.next_element_seed(Object::<S>::at(at))?.map(Some))
    }
}

/// Reads a member's name: its index among the described ones, or `None` after noting that it is dropped.
pub(super) struct MemberName<'a> {
    pub(super) at: &'a At<'a>,
    pub(super) names: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for MemberName<'_> {
    type Value = Option<usize>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for MemberName<'_> {
    type Value = Option<usize>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        let index = self.names.iter().position(|known| *known == name);
        if index.is_none() {
            self.at.log.drop_member(self.at, name);
        }
        Ok(index)
    }
}
