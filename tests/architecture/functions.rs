//! Functions are short, and features select whole items.

use std::path::Path;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Attribute, Block, ImplItemFn, ItemFn, ItemMod, Macro, Signature, TraitItemFn,
    spanned::Spanned as _,
    visit::{self, Visit},
};

use super::{syntax::modules, workspace::shown};

/// A longer function has several steps, each of which can have a name.
const MAX_FUNCTION_LINES: usize = 80;

/// Calls a function with each function that has a body, also those in other functions.
struct Functions<F>(F);

impl<F: FnMut(&Signature, &Block)> Visit<'_> for Functions<F> {
    fn visit_item_fn(&mut self, function: &ItemFn) {
        (self.0)(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &ImplItemFn) {
        (self.0)(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &TraitItemFn) {
        if let Some(block) = &function.default {
            (self.0)(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    // Modules are visited one by one.
    fn visit_item_mod(&mut self, _: &ItemMod) {}
}

/// Finds `#[cfg]` and `cfg!` in a body, also in the arguments of macros.
#[derive(Default)]
struct Conditions(Vec<Span>);

impl Visit<'_> for Conditions {
    fn visit_attribute(&mut self, attribute: &Attribute) {
        if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
            self.0.push(attribute.span());
        }
    }

    fn visit_macro(&mut self, it: &Macro) {
        if it.path.is_ident("cfg") {
            self.0.push(it.span());
        }
        self.find_in(it.tokens.clone());
    }
}

impl Conditions {
    fn find_in(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => self.find_in(group.stream()),
                TokenTree::Ident(name) if name == "cfg" => {
                    let is_used =
                        matches!(tokens.peek(), Some(TokenTree::Group(_) | TokenTree::Punct(_)));
                    self.0.extend(is_used.then(|| name.span()));
                }
                _ => {}
            }
        }
    }
}

fn place(file: &Path, span: Span) -> String {
    format!("{}:{}", shown(file), span.start().line)
}

#[test]
fn functions_have_at_most_80_lines() {
    let mut long = Vec::new();
    for module in modules() {
        let mut measure = Functions(|signature: &Signature, block: &Block| {
            let lines = block.span().end().line + 1 - signature.span().start().line;
            if lines > MAX_FUNCTION_LINES {
                long.push(format!(
                    "{} {} has {lines} lines",
                    place(&module.file, signature.span()),
                    signature.ident
                ));
            }
        });
        module.items.iter().for_each(|item| measure.visit_item(item));
    }
    assert!(
        long.is_empty(),
        "{} functions have more than {MAX_FUNCTION_LINES} lines: {long:#?}",
        long.len()
    );
}

#[test]
fn features_select_no_part_of_a_function() {
    let mut found = Vec::new();
    for module in modules() {
        let mut find = Functions(|_: &Signature, block: &Block| {
            let mut conditions = Conditions::default();
            conditions.visit_block(block);
            found.extend(conditions.0.iter().map(|span| place(&module.file, *span)));
        });
        module.items.iter().for_each(|item| find.visit_item(item));
    }
    found.dedup();
    assert!(found.is_empty(), "{} conditions are in bodies of functions: {found:#?}", found.len());
}

#[test]
fn conditions_are_found_in_every_form() {
    let count = |text: &str| {
        let mut conditions = Conditions::default();
        conditions.visit_block(&syn::parse_str(text).unwrap());
        conditions.0.len()
    };
    assert_eq!(count("{ #[cfg(unix)] let a = 1; }"), 1);
    assert_eq!(count("{ if cfg!(unix) { f(); } }"), 1);
    assert_eq!(count("{ select! { a = b => { if cfg!(unix) {} #[cfg(unix)] c() } } }"), 2);
    assert_eq!(count("{ let cfg = 1; g(cfg); println!(\"{}\", cfg); }"), 0);
}
