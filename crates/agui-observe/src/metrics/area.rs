//! The declaration of the metrics of an area.

/// Declares an area. A field with a name is a metric: the doc of the field is its description. `in
/// seconds` makes a histogram for each combination of labels, `in buckets` a single histogram
/// without a unit.
macro_rules! metrics {
    ($area:ident {$(
        $(#[doc = $help:literal])*
        $vis:vis $field:ident: $type:ty $(= $name:literal $(in $unit:ident $buckets:ident)?)?,
    )*}) => {
        pub struct $area {
            $($(#[doc = $help])* $vis $field: $type,)*
        }

        impl Default for $area {
            fn default() -> Self {
                Self { $($field: metrics!(@new $($($unit $buckets)?)?),)* }
            }
        }

        impl $area {
            /// Registers the metrics in the order in which they are declared.
            pub(super) fn register(&self, registry: &mut prometheus_client::registry::Registry) {
                $(metrics!(@register registry, self.$field, concat!($($help),*).trim() $(, $name $($unit)?)?);)*
            }
        }
    };
    (@new) => { Default::default() };
    (@new seconds $buckets:ident) => {
        prometheus_client::metrics::family::Family::new_with_constructor(|| Histogram::new($buckets))
    };
    (@new buckets $buckets:ident) => { Histogram::new($buckets) };
    (@register $registry:ident, $metric:expr, $help:expr) => {};
    (@register $registry:ident, $metric:expr, $help:expr, $name:literal seconds) => {
        $registry.register_with_unit($name, $help, prometheus_client::registry::Unit::Seconds, $metric.clone())
    };
    (@register $registry:ident, $metric:expr, $help:expr, $name:literal $(buckets)?) => {
        $registry.register($name, $help, $metric.clone())
    };
}

pub(super) use metrics;
