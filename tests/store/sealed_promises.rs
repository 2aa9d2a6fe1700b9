//! The promises of the stores of this crate about sealed values.

use agui_server::store::{Retention, Store};
use agui_store::sealed::{ExpectedValue, SealedStore, SealedValue};
use futures::future::join_all;

use agui_store::contract::{self, Promise, steps::*};

/// Checks every promise about sealed values, each on a new store.
pub async fn check<S: Store>(new_store: impl AsyncFn() -> S) {
    contract::check_all(PROMISES, new_store).await;
}

const PROMISES: &[(&str, Promise)] = &[
    ("a_value_is_written_only_in_the_place_of_the_expected_one", |store| {
        Box::pin(a_value_is_written_only_in_the_place_of_the_expected_one(store))
    }),
    ("of_concurrent_writes_one_succeeds", |store| {
        Box::pin(of_concurrent_writes_one_succeeds(store))
    }),
    ("values_are_deleted_by_name_by_version_and_by_owner", |store| {
        Box::pin(values_are_deleted_by_name_by_version_and_by_owner(store))
    }),
    ("values_are_swept_after_their_time", |store| {
        Box::pin(values_are_swept_after_their_time(store))
    }),
];

const ANN: &str = "key:ann";
const BOB: &str = "key:bob";

fn value(name: &str, bytes: &[u8]) -> SealedValue {
    SealedValue::new(name.to_owned(), bytes.to_vec(), None)
}

async fn put(
    values: &dyn SealedStore,
    owner: &str,
    value: &SealedValue,
    expected: ExpectedValue,
) -> bool {
    values.put_sealed(owner, value, expected).await.unwrap()
}

async fn a_value_is_written_only_in_the_place_of_the_expected_one(store: DynStore) {
    let values = store.sealed_values().unwrap();
    let (first, second, third) = (value("a", &[0, 255, 10]), value("a", b"2"), value("a", b"3"));
    assert!(!put(values, ANN, &first, ExpectedValue::Version(first.version)).await);
    assert!(put(values, ANN, &first, ExpectedValue::Absent).await);
    assert!(!put(values, ANN, &second, ExpectedValue::Absent).await);
    assert_eq!(values.sealed(ANN).await.unwrap(), std::slice::from_ref(&first));
    assert!(put(values, ANN, &second, ExpectedValue::Version(first.version)).await);
    assert!(!put(values, ANN, &third, ExpectedValue::Version(first.version)).await);
    assert!(put(values, ANN, &third, ExpectedValue::Any).await);
    let until = SealedValue { until: Some(NOW), ..value("b", b"") };
    assert!(put(values, ANN, &until, ExpectedValue::Any).await);
    assert_eq!(values.sealed(ANN).await.unwrap(), [third, until]);
    assert_eq!(values.sealed(BOB).await.unwrap(), []);
}

async fn of_concurrent_writes_one_succeeds(store: DynStore) {
    let values = store.sealed_values().unwrap();
    let first = value("a", b"1");
    for expected in [ExpectedValue::Absent, ExpectedValue::Version(first.version)] {
        let others: Vec<_> = (0..20).map(|_| value("a", b"2")).collect();
        if expected != ExpectedValue::Absent {
            put(values, ANN, &first, ExpectedValue::Any).await;
        }
        let written = join_all(others.iter().map(|other| put(values, ANN, other, expected))).await;
        assert_eq!(written.iter().filter(|written| **written).count(), 1);
        let at = written.iter().position(|written| *written).unwrap();
        assert_eq!(values.sealed(ANN).await.unwrap(), [others[at].clone()]);
    }
}

async fn values_are_deleted_by_name_by_version_and_by_owner(store: DynStore) {
    let values = store.sealed_values().unwrap();
    let all = [value("a", b"1"), value("b", b"2"), value("c", b"3")];
    for owner in [ANN, BOB] {
        for value in &all {
            assert!(put(values, owner, value, ExpectedValue::Absent).await);
        }
    }
    let delete = async |name, version| values.delete_sealed(ANN, name, version).await.unwrap();
    assert_eq!(delete(Some("a"), Some(all[1].version)).await, 0);
    assert_eq!(delete(Some("a"), Some(all[0].version)).await, 1);
    assert_eq!(delete(Some("b"), None).await, 1);
    assert_eq!(values.sealed(ANN).await.unwrap(), all[2..]);
    assert_eq!(delete(None, None).await, 1);
    assert_eq!(values.sealed(ANN).await.unwrap(), []);
    assert_eq!(values.sealed(BOB).await.unwrap(), all);
}

async fn values_are_swept_after_their_time(store: DynStore) {
    let values = store.sealed_values().unwrap();
    let [past, now, never] =
        [Some(NOW - 1), Some(NOW), None].map(|until| SealedValue { until, ..value("x", b"1") });
    for (name, it) in [("a", &past), ("b", &now), ("c", &never)] {
        let named = SealedValue { name: name.to_owned(), ..it.clone() };
        assert!(put(values, ANN, &named, ExpectedValue::Absent).await);
    }
    store.sweep(&Retention::default(), NOW).await.unwrap();
    let names: Vec<_> =
        values.sealed(ANN).await.unwrap().into_iter().map(|value| value.name).collect();
    assert_eq!(names, ["b", "c"]);
}
