//! The macro that defines a struct of the protocol, and its constructor.

/// Defines a struct from its required members, its `optional` ones, which are left out of JSON when absent, and
/// `defaulted` ones with attributes of their own. `new` takes the required members. A struct that is `without_new` can
/// write its own from `bare`, which is private.
macro_rules! wire_struct {
    (@define [$($constructor:tt)*] $(#[$meta:meta])* $name:ident {
        $($(#[$required_meta:meta])* $required:ident: $required_type:ty,)*
    } $(optional {
        $($(#[$optional_meta:meta])* $optional:ident: $optional_type:ty,)*
    })? $(defaulted {
        $($(#[$defaulted_meta:meta])* $defaulted:ident: $defaulted_type:ty,)*
    })?) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$required_meta])* pub $required: $required_type,)*
            $($(
                $(#[$optional_meta])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $optional: Option<$optional_type>,
            )*)?
            $($($(#[$defaulted_meta])* pub $defaulted: $defaulted_type,)*)?
        }

        impl $name {
            $($constructor)*($($required: impl Into<$required_type>),*) -> Self {
                Self {
                    $($required: $required.into(),)*
                    $($($optional: None,)*)?
                    $($($defaulted: Default::default(),)*)?
                }
            }
        }
    };
    (without_new $($definition:tt)*) => {
        $crate::protocol::wire_struct::wire_struct!(@define [#[allow(dead_code)] fn bare] $($definition)*);
    };
    ($($definition:tt)*) => {
        $crate::protocol::wire_struct::wire_struct!(@define [
            /// Creates it with its required members alone.
            pub fn new
        ] $($definition)*);
    };
}
pub(super) use wire_struct;
