//! The macro that defines a struct of the protocol, and its constructor.

/// Defines a struct from its required members, its `optional` ones, which are left out of JSON when absent, and
/// `defaulted` ones with attributes of their own. `new` takes the required members. A struct with its
/// `own_new` writes that from `bare`, which is private; one that is `without_new` has no constructor.
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

        $crate::protocol::wire_struct::wire_struct!(
            @construct [$($constructor)*] $name [$($required: $required_type,)*] [$($($optional,)*)? $($($defaulted,)*)?]
        );
    };
    (@construct [] $($members:tt)*) => {};
    (@construct [$($constructor:tt)*] $name:ident [$($required:ident: $type:ty,)*] [$($other:ident,)*]) => {
        impl $name {
            $($constructor)*($($required: impl Into<$type>),*) -> Self {
                Self { $($required: $required.into(),)* $($other: Default::default(),)* }
            }
        }
    };
    (without_new $($definition:tt)*) => {
        $crate::protocol::wire_struct::wire_struct!(@define [] $($definition)*);
    };
    (own_new $($definition:tt)*) => {
        $crate::protocol::wire_struct::wire_struct!(@define [fn bare] $($definition)*);
    };
    ($($definition:tt)*) => {
        $crate::protocol::wire_struct::wire_struct!(@define [
            /// Creates it with its required members alone.
            pub fn new
        ] $($definition)*);
    };
}
pub(super) use wire_struct;
