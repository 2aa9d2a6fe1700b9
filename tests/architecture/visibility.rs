//! An item of a member is `pub` for another crate, or for users of the root package. Other items
//! are `pub(crate)`.
//!
//! An item counts as used if a crate above has its name as a word in code, in its sources, tests, benches, examples or fuzz
//! targets, or if an exported macro of its own crate has it. A method needs a `.` or `::` before it. The lists of `host.rs` name
//! what they offer, and use nothing. A type in the signature of a used item is used, too: Rust wants it to be as public.

use std::collections::BTreeSet;

use syn::{
    Fields, Ident, ImplItem, Item, TraitItem, Visibility,
    visit::{self, Visit},
};

use super::{
    public_items::{face, owner_of},
    resolve::{AllNames, is_hidden},
    syntax::{Module, attributes, modules},
    words::{code_of_packages, names_in_macros},
    workspace::{packages, packages_above, shown},
};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Item,
    Method,
    /// The types that a type names where it implements a trait. The path is that of the type.
    TraitTypes,
}

/// A public item or method.
struct Offer {
    path: Vec<String>,
    kind: Kind,
    is_hidden: bool,
    /// The names in the item's signature. Types with these names have to be as public.
    signature: Words,
}

/// Collects names.
#[derive(Default)]
struct Words(BTreeSet<String>);

impl Visit<'_> for Words {
    fn visit_ident(&mut self, name: &Ident) {
        self.0.insert(name.to_string());
    }
}

impl Words {
    fn of(read: impl FnOnce(&mut Self)) -> Self {
        let mut words = Self::default();
        read(&mut words);
        words
    }

    fn add_fields(&mut self, fields: &Fields) {
        let public = fields.iter().filter(|field| is_public(&field.vis));
        public.for_each(|field| self.visit_field(field));
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

#[test]
fn what_a_member_offers_is_used_by_another_crate_or_by_users() {
    let modules = modules();
    let names = AllNames::of(&modules);
    let face: BTreeSet<_> = face(&names).into_keys().map(|declared| declared.path).collect();
    let code = code_of_packages();
    let above = packages_above();
    let in_macros = names_in_macros(&modules);
    let mut unused = Vec::new();
    for package in packages().iter().filter(|package| package.is_member()) {
        let of_package = modules.iter().filter(|module| module.package == package.name);
        let offers: Vec<_> = of_package
            .flat_map(|module| offers(module, &names).into_iter().map(move |it| (module, it)))
            .collect();
        let users: Vec<_> = above[&package.name].iter().map(|name| &code[name]).collect();
        let in_macros = in_macros.get(&package.name);
        let is_named = |offer: &Offer| {
            let name = offer.path.last().unwrap();
            let in_code = users.iter().any(|code| match offer.kind {
                Kind::Item => code.words.contains(name),
                Kind::Method => code.called.contains(name),
                Kind::TraitTypes => false,
            });
            in_code || in_macros.is_some_and(|names| names.contains(name))
        };
        let only: Vec<_> = offers.iter().map(|(_, offer)| offer).collect();
        let used = used_names(&only, is_named, &face);
        let wrong = offers.iter().filter(|(_, offer)| is_unused(offer, &used));
        unused.extend(wrong.map(|(module, offer)| {
            format!("{} in {}", offer.path.join("::"), shown(&module.file))
        }));
    }
    assert!(
        unused.is_empty(),
        "{} items are `pub`, and no other crate names them:\n{}",
        unused.len(),
        unused.join("\n")
    );
}

/// Returns the paths of the items that are named or that users see, and of the types in their signatures.
fn used_names(
    offers: &[&Offer],
    is_named: impl Fn(&Offer) -> bool,
    face: &BTreeSet<Vec<String>>,
) -> BTreeSet<Vec<String>> {
    let is_seen = |offer: &Offer| {
        let owner = &offer.path[..offer.path.len() - 1];
        offer.kind == Kind::Method && !offer.is_hidden && face.contains(owner)
    };
    let named = offers.iter().filter(|offer| is_seen(offer) || is_named(offer));
    let mut used: BTreeSet<_> = named.map(|offer| offer.path.clone()).collect();
    used.extend(face.iter().cloned());
    loop {
        let signatures: BTreeSet<_> = offers
            .iter()
            .filter(|offer| used.contains(&offer.path))
            .flat_map(|offer| &offer.signature.0)
            .collect();
        let further: Vec<_> = offers
            .iter()
            .filter(|offer| offer.kind == Kind::Item && is_unused(offer, &used))
            .filter(|offer| signatures.contains(offer.path.last().unwrap()))
            .map(|offer| offer.path.clone())
            .collect();
        if further.is_empty() {
            return used;
        }
        used.extend(further);
    }
}

fn is_unused(offer: &Offer, used: &BTreeSet<Vec<String>>) -> bool {
    offer.kind != Kind::TraitTypes && !used.contains(&offer.path)
}

/// Returns the public items of a module, and the public methods in it.
fn offers(module: &Module, names: &AllNames) -> Vec<Offer> {
    let from = module.full_path();
    let mut found = Vec::new();
    for item in &module.items {
        let of_item = attributes(item).iter().any(is_hidden);
        if let Some((name, signature)) = public_item(item) {
            let path = [&from[..], &[name.to_string()]].concat();
            found.push(Offer { path, kind: Kind::Item, is_hidden: of_item, signature });
        }
        let Item::Impl(it) = item else { continue };
        let Some(owner) = owner_of(it, &from, names) else { continue };
        for item in &it.items {
            let (visibility, name, attributes, signature) = match item {
                ImplItem::Fn(it) => {
                    let signature = Words::of(|words| words.visit_signature(&it.sig));
                    (&it.vis, &it.sig.ident, &it.attrs, signature)
                }
                ImplItem::Const(it) => {
                    (&it.vis, &it.ident, &it.attrs, Words::of(|words| words.visit_type(&it.ty)))
                }
                ImplItem::Type(it) => {
                    let signature = Words::of(|words| words.visit_type(&it.ty));
                    found.push(Offer {
                        path: owner.clone(),
                        kind: Kind::TraitTypes,
                        is_hidden: of_item,
                        signature,
                    });
                    continue;
                }
                _ => continue,
            };
            if is_public(visibility) {
                let path = [&owner[..], &[name.to_string()]].concat();
                let is_hidden = of_item || attributes.iter().any(is_hidden);
                found.push(Offer { path, kind: Kind::Method, is_hidden, signature });
            }
        }
    }
    found
}

/// Returns the name and the signature of an item that is `pub`.
fn public_item(item: &Item) -> Option<(&Ident, Words)> {
    let (visibility, name, signature) = match item {
        Item::Const(it) => (&it.vis, &it.ident, Words::of(|words| words.visit_type(&it.ty))),
        Item::Enum(it) => {
            (&it.vis, &it.ident, Words::of(|words| visit::visit_item_enum(words, it)))
        }
        Item::Fn(it) => (&it.vis, &it.sig.ident, Words::of(|words| words.visit_signature(&it.sig))),
        Item::Static(it) => (&it.vis, &it.ident, Words::of(|words| words.visit_type(&it.ty))),
        Item::Struct(it) => (
            &it.vis,
            &it.ident,
            Words::of(|words| {
                words.visit_generics(&it.generics);
                words.add_fields(&it.fields);
            }),
        ),
        Item::Trait(it) => (
            &it.vis,
            &it.ident,
            Words::of(|words| {
                it.supertraits.iter().for_each(|bound| words.visit_type_param_bound(bound));
                for item in &it.items {
                    match item {
                        TraitItem::Fn(it) => words.visit_signature(&it.sig),
                        item => words.visit_trait_item(item),
                    }
                }
            }),
        ),
        Item::Type(it) => (&it.vis, &it.ident, Words::of(|words| words.visit_type(&it.ty))),
        _ => return None,
    };
    is_public(visibility).then_some((name, signature))
}

#[test]
fn an_item_is_used_by_its_name_by_users_or_by_a_signature() {
    let text = "
        pub struct Seen { pub a: InField, b: InPrivateField }
        pub(crate) fn f() {}
        pub struct Named(u8);
        pub struct Unused(u8);
        pub struct InField; pub struct InPrivateField; pub struct InMethod; pub struct InError; pub struct InUnused;
        impl Seen { pub fn a(&self) -> Vec<InMethod> {} #[doc(hidden)] pub fn b(&self) {} }
        #[doc(hidden)] impl Seen { pub fn c(&self) {} }
        impl Named { pub fn d(&self) -> InUnused {} fn e(&self) {} pub fn called(&self) {} }
        impl TryFrom<u8> for Named { type Error = InError; }
    ";
    let modules = super::syntax::modules_of_text("m", text);
    let face = [["m", "Seen"].map(str::to_owned).to_vec()].into();
    let offers = offers(&modules[0], &AllNames::of(&modules));
    let offers: Vec<_> = offers.iter().collect();
    let is_named =
        |offer: &Offer| matches!(&offer.path[offer.path.len() - 1][..], "Named" | "called");
    let used = used_names(&offers, is_named, &face);
    let unused = offers.iter().filter(|offer| is_unused(offer, &used));
    let unused: Vec<_> = unused.map(|offer| offer.path[1..].join("::")).collect();
    assert_eq!(unused, ["Unused", "InPrivateField", "InUnused", "Seen::b", "Seen::c", "Named::d"]);
}
