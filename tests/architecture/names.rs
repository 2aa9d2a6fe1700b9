//! A type's name says what it is without its module. So the name is unique in all crates; a type
//! that only its own module sees may share its name with a type in another room: another member, or
//! another folder of the root package.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, Visibility};

use super::{syntax::modules, workspace::ROOT};

/// Names that several modules may have, with the reasons.
const REPEATED: &[(&str, &str)] = &[];

#[test]
fn names_of_types_are_unique_in_all_crates() {
    // The modules of a name, with their crates; true if others see the type.
    let mut places: BTreeMap<String, BTreeMap<Vec<String>, bool>> = BTreeMap::new();
    for module in modules() {
        for item in &module.items {
            let (visibility, name) = match item {
                Item::Enum(it) => (&it.vis, &it.ident),
                Item::Struct(it) => (&it.vis, &it.ident),
                Item::Trait(it) => (&it.vis, &it.ident),
                Item::Type(it) => (&it.vis, &it.ident),
                Item::Union(it) => (&it.vis, &it.ident),
                _ => continue,
            };
            let is_seen = !matches!(visibility, Visibility::Inherited);
            places.entry(name.to_string()).or_default().insert(module.full_path(), is_seen);
        }
    }
    let repeats: Vec<_> = places.iter().filter(|(_, places)| is_repeated(places)).collect();
    let allowed: BTreeSet<_> = REPEATED.iter().map(|(name, _)| *name).collect();
    let unused: Vec<_> =
        allowed.iter().filter(|name| !repeats.iter().any(|(found, _)| found == *name)).collect();
    let wrong = repeats.iter().filter(|(name, _)| !allowed.contains(name.as_str()));
    let wrong: Vec<_> = wrong
        .map(|(name, places)| {
            let places: Vec<_> = places.keys().map(|path| path.join("::")).collect();
            format!("{name}: {}", places.join(", "))
        })
        .collect();
    assert!(wrong.is_empty(), "{} names are used by several types: {wrong:#?}", wrong.len());
    assert!(unused.is_empty(), "these names are not repeated: {unused:?}");
}

/// Returns whether several types are seen by other modules, or several types of one room have the name.
fn is_repeated(places: &BTreeMap<Vec<String>, bool>) -> bool {
    let seen = places.values().filter(|is_seen| **is_seen).count();
    let room = |path: &Vec<String>| {
        let folder = path.get(1).filter(|_| path[0] == ROOT);
        (path[0].clone(), folder.cloned())
    };
    let rooms: BTreeSet<_> = places.keys().map(room).collect();
    seen > 1 || rooms.len() < places.len()
}
