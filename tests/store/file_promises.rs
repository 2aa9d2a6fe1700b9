//! The promises of the stores of this crate about files.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
    sync::Mutex,
};

use agui_server::{
    protocol::{ContentPart, Message, PartSource},
    store::{Millis, Store, StoreError, ThreadKey},
};
use agui_store::{
    files::{
        DeletedFile, FILE_OVERHEAD, FileDeletion, FileLimit, FileLimits, FileObjects, FileStore,
        FileStream, ImageSize, NewFile, PutFile, SecretName, StoredFile,
    },
    model::now,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use sha2::{Digest as _, Sha256};

use agui_store::contract::{self, Promise, steps::*};

/// Checks every promise about files, each on a new store.
pub async fn check<S: Store>(new_store: impl AsyncFn() -> S) {
    contract::check_all(PROMISES, new_store).await;
}

const PROMISES: &[(&str, Promise)] = &[
    ("the_objects_of_deleted_files_stay_noted", |store| {
        Box::pin(the_objects_of_deleted_files_stay_noted(store))
    }),
    ("the_same_bytes_of_an_owner_are_one_file", |store| {
        Box::pin(the_same_bytes_of_an_owner_are_one_file(store))
    }),
    ("bytes_are_read_whole_and_in_parts", |store| {
        Box::pin(bytes_are_read_whole_and_in_parts(store))
    }),
    ("files_are_listed_newest_first", |store| Box::pin(files_are_listed_newest_first(store))),
    ("a_file_is_used_by_threads_whose_messages_name_it", |store| {
        Box::pin(a_file_is_used_by_threads_whose_messages_name_it(store))
    }),
    ("unused_files_are_removed", |store| Box::pin(unused_files_are_removed(store))),
    ("the_bytes_of_files_are_limited", |store| Box::pin(the_bytes_of_files_are_limited(store))),
    ("the_number_of_files_is_limited", |store| Box::pin(the_number_of_files_is_limited(store))),
    ("all_files_of_an_owner_are_deleted_with_its_threads", |store| {
        Box::pin(all_files_of_an_owner_are_deleted_with_its_threads(store))
    }),
    ("concurrent_uploads_of_the_same_bytes_make_one_file", |store| {
        Box::pin(concurrent_uploads_of_the_same_bytes_make_one_file(store))
    }),
    ("each_secret_stays_the_same", |store| Box::pin(each_secret_stays_the_same(store))),
];

const ANN: &str = "key:ann";
const BOB: &str = "key:bob";
const FAR: Millis = 1 << 50;

async fn put_with(files: &dyn FileStore, file: NewFile<'_>) -> PutFile {
    let digest = digest_of(&file.bytes);
    files.put(&NewFile { digest: &digest, ..file }).await.unwrap()
}

fn new_file(owner: &'static str, bytes: impl Into<Bytes>) -> NewFile<'static> {
    NewFile {
        owner,
        media_type: "image/png",
        name: Some("é.png"),
        bytes: bytes.into(),
        digest: "",
        size: Some(ImageSize { width: 3, height: u32::MAX }),
        now: NOW,
        limits: FileLimits::default(),
        objects: None,
    }
}

async fn put(files: &dyn FileStore, owner: &'static str, bytes: &'static str) -> StoredFile {
    match put_with(files, new_file(owner, bytes)).await {
        PutFile::Stored(file) => file,
        other => panic!("{other:?}"),
    }
}

fn naming(id: &str) -> Message {
    let part = ContentPart::image(PartSource::File {
        value: id.to_owned(),
        provider: Some("agui-server".to_owned()),
        mime_type: Some("image/png".to_owned()),
    });
    Message::user(format!("of {id}"), vec![ContentPart::text("see"), part])
}

async fn delete(files: &dyn FileStore, file: &StoredFile) -> DeletedFile {
    files.delete_file(&file.owner, &file.id, FileDeletion::UnlessUsed).await.unwrap()
}

async fn has(files: &dyn FileStore, file: &StoredFile) -> bool {
    let found = files.file(Some(&file.owner), &file.id).await.unwrap();
    assert!(found.as_ref().is_none_or(|found| found == file));
    let bytes = files.file_bytes(file, 0..file.bytes).await.unwrap();
    assert_eq!(bytes.is_some(), found.is_some());
    found.is_some()
}

async fn the_same_bytes_of_an_owner_are_one_file(store: DynStore) {
    let Some(files) = store.files() else { return };
    let file = put(files, ANN, "picture").await;
    assert_eq!(
        (&*file.owner, &*file.media_type, file.name.as_deref()),
        (ANN, "image/png", Some("é.png"))
    );
    assert_eq!((file.bytes, file.size, file.created_at), (7, new_file(ANN, "").size, NOW));
    let again =
        NewFile { name: None, media_type: "text/plain", now: NOW + 1, ..new_file(ANN, "picture") };
    assert_eq!(put_with(files, again).await, PutFile::Existed(file.clone()));
    let of_bob = put(files, BOB, "picture").await;
    assert!(of_bob.id != file.id && has(files, &file).await && has(files, &of_bob).await);
    assert_eq!(
        files.file(Some(BOB), &file.id).await.unwrap(),
        None,
        "another owner's file does not exist"
    );
    assert_eq!(files.file(None, &file.id).await.unwrap(), Some(file.clone()));
    assert_eq!(files.file(None, "file_1").await.unwrap(), None);
    let bytes = files.file_bytes(&file, 0..7).await.unwrap();
    assert_eq!(bytes.as_deref(), Some(&b"picture"[..]));
}

async fn bytes_are_read_whole_and_in_parts(store: DynStore) {
    let Some(files) = store.files() else { return };
    const CHUNK: u64 = 256 * 1024;
    for length in [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK - 7] {
        let bytes: Vec<u8> = (0..length).map(|at| (at / 251 + at) as u8).collect();
        let PutFile::Stored(file) = put_with(files, new_file(ANN, bytes.clone())).await else {
            panic!()
        };
        let ends = [
            0,
            1,
            length / 2,
            CHUNK - 1,
            CHUNK,
            CHUNK + 1,
            2 * CHUNK,
            length - 1,
            length,
            length + 9,
        ];
        for (from, to) in ends.iter().flat_map(|from| ends.map(|to| (*from, to))) {
            let read = files.file_bytes(&file, from..to).await.unwrap().unwrap();
            let [from, to] = [from.min(length) as usize, to.min(length) as usize];
            assert!(read == bytes[from.min(to)..to], "{from}..{to} of {length}");
        }
    }
}

async fn files_are_listed_newest_first(store: DynStore) {
    let Some(files) = store.files() else { return };
    let mut all = Vec::new();
    for bytes in ["a", "b", "c"] {
        all.insert(0, put(files, ANN, bytes).await);
    }
    put(files, BOB, "d").await;
    assert_eq!(files.files(ANN, None, 2).await.unwrap(), all[..2]);
    assert_eq!(files.files(ANN, Some(all[1].number), 2).await.unwrap(), all[2..]);
    assert!(files.files("key:carl", None, 9).await.unwrap().is_empty());
}

async fn a_file_is_used_by_threads_whose_messages_name_it(store: DynStore) {
    let Some(files) = store.files() else { return };
    let [sent, made, changed, other] = [
        put(files, ANN, "a").await,
        put(files, ANN, "b").await,
        put(files, ANN, "c").await,
        put(files, BOB, "a").await,
    ];
    let begun = run("t", "r").of(ANN).with([
        naming(&sent.id),
        naming(&other.id),
        naming("file_1"),
        user("x"),
    ]);
    let lease = begun.begun(&store).await;
    assert_eq!(delete(files, &sent).await, DeletedFile::Used(1));
    assert!(
        end_at(NOW)
            .with([naming(&made.id), naming(&sent.id)])
            .finish(&store, &lease, 0)
            .await
            .unwrap()
    );
    let edit = TestRun { updated: vec![(4, naming(&changed.id))], ..run("t", "s").of(ANN) };
    edit.ended(&store, answer(["x"])).await;
    let key = |id: &str| ThreadKey { owner: ANN.into(), id: id.into() };
    let content = store.content(&key("t")).await.unwrap().unwrap();
    assert!(store.insert(&key("copy"), &content).await.unwrap());
    for file in [&sent, &made, &changed] {
        assert_eq!(delete(files, file).await, DeletedFile::Used(2));
    }
    assert_eq!(
        delete(files, &other).await,
        DeletedFile::Deleted,
        "a thread of another owner does not use it"
    );
    assert_eq!(delete(files, &other).await, DeletedFile::Unknown);
    let of_bob = StoredFile { owner: BOB.into(), ..sent.clone() };
    assert_eq!(delete(files, &of_bob).await, DeletedFile::Unknown);
    let number = async |id: &str| view(&store, &key(id)).await.unwrap().thread.number;
    store.delete(number("t").await).await.unwrap();
    assert_eq!(delete(files, &made).await, DeletedFile::Used(1));
    let forced = files.delete_file(ANN, &changed.id, FileDeletion::EvenIfUsed).await.unwrap();
    assert_eq!(forced, DeletedFile::Deleted);
    assert!(!has(files, &changed).await && has(files, &made).await);
    store.delete(number("copy").await).await.unwrap();
    assert_eq!(delete(files, &made).await, DeletedFile::Deleted);
    assert!(!has(files, &made).await && has(files, &sent).await);
}

async fn unused_files_are_removed(store: DynStore) {
    let Some(files) = store.files() else { return };
    let sweep = async |before| files.sweep_files(before, NOW).await.unwrap();
    let [old, kept, used] =
        [put(files, ANN, "a").await, put(files, ANN, "b").await, put(files, ANN, "c").await];
    put_with(files, NewFile { now: NOW + 100, ..new_file(ANN, "b") }).await;
    for thread in ["t", "u"] {
        run(thread, "r").of(ANN).with([naming(&used.id)]).ended(&store, answer(["x"])).await;
    }
    assert_eq!((sweep(None).await, sweep(Some(NOW)).await), (0, 0));
    assert_eq!(sweep(Some(NOW + 100)).await, 1);
    assert!(!has(files, &old).await && has(files, &kept).await && has(files, &used).await);
    let number = async |id: &str| {
        view(&store, &ThreadKey { owner: ANN.into(), id: id.into() }).await.unwrap().thread.number
    };
    store.delete(number("t").await).await.unwrap();
    assert_eq!(sweep(Some(FAR)).await, 1, "the other thread uses its file");
    assert!(!has(files, &kept).await && has(files, &used).await);
    let deleted_at = now();
    store.delete(number("u").await).await.unwrap();
    assert_eq!(sweep(Some(deleted_at)).await, 0, "it was used until then");
    assert_eq!(sweep(Some(FAR)).await, 1);
    assert!(!has(files, &used).await);
    put(files, ANN, "c").await;
}

async fn the_bytes_of_files_are_limited(store: DynStore) {
    let Some(files) = store.files() else { return };
    run("t", "r").of(ANN).with([user("x")]).ended(&store, answer(["y"])).await;
    let of_threads =
        [store.stored_bytes(Some(ANN)).await.unwrap(), store.stored_bytes(None).await.unwrap()];
    let bounded = async |owner, bytes: &'static str| {
        let (owner_bytes, all) = (Some(2 * FILE_OVERHEAD + 6), Some(3 * FILE_OVERHEAD + 8));
        let limits = FileLimits { owner_bytes, bytes: all, ..FileLimits::default() };
        put_with(files, NewFile { limits, ..new_file(owner, bytes) }).await
    };
    assert!(is_stored(bounded(ANN, "1234").await));
    assert_eq!(bounded(ANN, "123").await, PutFile::Full(FileLimit::OwnerBytes));
    assert!(is_stored(bounded(ANN, "12").await));
    assert_eq!(bounded(BOB, "123").await, PutFile::Full(FileLimit::Bytes));
    assert!(matches!(bounded(ANN, "1234").await, PutFile::Existed(_)), "it is there");
    let after =
        [store.stored_bytes(Some(ANN)).await.unwrap(), store.stored_bytes(None).await.unwrap()];
    assert_eq!(after, of_threads.map(|bytes| bytes + 2 * FILE_OVERHEAD + 6));
    let limits =
        FileLimits { owner_bytes: Some(5 * (FILE_OVERHEAD + 10)), ..FileLimits::default() };
    let concurrent =
        (0..20).map(|n| NewFile { limits, ..new_file("key:carl", format!("file {n:05}")) });
    let concurrent = join_all(concurrent.map(|file| put_with(files, file))).await;
    assert_eq!(concurrent.into_iter().filter(|put| is_stored(put.clone())).count(), 5);
}

async fn the_number_of_files_is_limited(store: DynStore) {
    let Some(files) = store.files() else { return };
    let bounded = async |owner, bytes: String| {
        let limits = FileLimits { owner_files: Some(2), files: Some(3), ..FileLimits::default() };
        put_with(files, NewFile { limits, ..new_file(owner, bytes) }).await
    };
    for _ in 0..2 {
        let concurrent = join_all((0..9).map(|n| bounded(ANN, format!("file {n}")))).await;
        assert_eq!(concurrent.iter().filter(|put| is_stored((*put).clone())).count(), 2);
        assert_eq!(bounded(ANN, "one more".to_owned()).await, PutFile::Full(FileLimit::OwnerFiles));
        assert!(is_stored(bounded(BOB, "a".to_owned()).await));
        assert_eq!(bounded(BOB, "b".to_owned()).await, PutFile::Full(FileLimit::Files));
        // Deleted files no longer count, in each way of deleting.
        let of_ann = files.files(ANN, None, 9).await.unwrap();
        let deleted =
            files.delete_file(ANN, &of_ann[0].id, FileDeletion::UnlessUsed).await.unwrap();
        assert_eq!(deleted, DeletedFile::Deleted);
        assert!(is_stored(bounded(ANN, "instead".to_owned()).await));
        store.delete_all(BOB).await.unwrap();
        assert_eq!(files.sweep_files(Some(FAR), NOW).await.unwrap(), 2);
        assert_eq!(store.stored_bytes(None).await.unwrap(), 0);
    }
}

fn is_stored(put: PutFile) -> bool {
    matches!(put, PutFile::Stored(_))
}

async fn all_files_of_an_owner_are_deleted_with_its_threads(store: DynStore) {
    let Some(files) = store.files() else { return };
    let [used, unused, other] =
        [put(files, ANN, "a").await, put(files, ANN, "b").await, put(files, BOB, "a").await];
    run("t", "r").of(ANN).with([naming(&used.id)]).ended(&store, answer(["x"])).await;
    assert_eq!(store.delete_all(ANN).await.unwrap(), 1);
    assert!(!has(files, &used).await && !has(files, &unused).await && has(files, &other).await);
    assert_eq!(store.stored_bytes(Some(ANN)).await.unwrap(), 0);
    assert!(files.files(ANN, None, 9).await.unwrap().is_empty());
    assert!(store.damaged_rows().await.unwrap().is_empty());
}

async fn concurrent_uploads_of_the_same_bytes_make_one_file(store: DynStore) {
    let Some(files) = store.files() else { return };
    let puts = join_all((0..20).map(|_| put_with(files, new_file(ANN, vec![7; 400_000])))).await;
    let found = puts.iter().map(|put| match put {
        PutFile::Stored(file) | PutFile::Existed(file) => &file.id,
        other => panic!("{other:?}"),
    });
    assert_eq!(found.collect::<HashSet<_>>().len(), 1);
    assert_eq!(files.files(ANN, None, 99).await.unwrap().len(), 1);
    assert_eq!(store.stored_bytes(None).await.unwrap(), 400_000 + FILE_OVERHEAD);
    assert!(store.damaged_rows().await.unwrap().is_empty());
}

async fn each_secret_stays_the_same(store: DynStore) {
    let Some(files) = store.files() else { return };
    let names = [SecretName::Files, SecretName::Upstream];
    let secrets = join_all((0..18).map(|at| files.secret(names[at % 2]))).await;
    let secrets: HashSet<_> = secrets.into_iter().map(Result::unwrap).collect();
    assert!(secrets.len() == 2 && !secrets.contains(&[0; 32]));
}

/// Stores a file. Returns its id.
pub async fn put_file(store: &DynStore, owner: &str, bytes: Vec<u8>) -> String {
    let digest = digest_of(&bytes);
    let file = NewFile {
        owner,
        media_type: "application/octet-stream",
        name: None,
        bytes: bytes.into(),
        digest: &digest,
        size: None,
        now: NOW,
        limits: FileLimits::default(),
        objects: None,
    };
    match store.files().unwrap().put(&file).await.unwrap() {
        PutFile::Stored(file) | PutFile::Existed(file) => file.id,
        full => panic!("{full:?}"),
    }
}

/// Deletes a file.
pub async fn delete_file(store: &DynStore, owner: &str, id: &str) {
    let deleted =
        store.files().unwrap().delete_file(owner, id, FileDeletion::EvenIfUsed).await.unwrap();
    assert_eq!(deleted, DeletedFile::Deleted);
}

fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Debug, Default)]
struct FakeObjects {
    objects: Mutex<BTreeMap<String, Bytes>>,
    is_broken: bool,
}

#[async_trait]
impl FileObjects for FakeObjects {
    async fn write(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        if self.is_broken {
            return Err(StoreError::Unavailable("broken".into()));
        }
        self.objects.lock().unwrap().insert(key.to_owned(), bytes);
        Ok(())
    }

    async fn read(&self, _: &str, _: Range<u64>) -> Result<Option<FileStream>, StoreError> {
        Ok(None)
    }

    async fn delete(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

async fn the_objects_of_deleted_files_stay_noted(store: DynStore) {
    let files = store.files().unwrap();
    let objects = FakeObjects::default();
    let at_objects =
        |owner, bytes: &'static str| NewFile { objects: Some(&objects), ..new_file(owner, bytes) };
    let put =
        async |owner, bytes: &'static str| match put_with(files, at_objects(owner, bytes)).await {
            PutFile::Stored(file) => file,
            other => panic!("{other:?}"),
        };
    let noted = async || files.deleted_objects(10).await.unwrap();
    let (first, second, other) = (put(ANN, "a").await, put(ANN, "b").await, put(BOB, "a").await);
    let Some(key) = first.object_key.clone() else {
        assert!(
            objects.objects.lock().unwrap().is_empty(),
            "a store in memory has the bytes itself"
        );
        return;
    };
    assert_eq!(objects.objects.lock().unwrap()[&key], "a");
    assert_eq!(files.file(Some(ANN), &first.id).await.unwrap(), Some(first.clone()));
    assert!(store.damaged_rows().await.unwrap().is_empty(), "no chunks are missing");
    assert_eq!(noted().await, Vec::<String>::new());

    files.delete_file(ANN, &first.id, FileDeletion::UnlessUsed).await.unwrap();
    assert_eq!(noted().await, [key.as_str()]);
    files.forget_objects(&[key]).await.unwrap();
    store.delete_all(ANN).await.unwrap();
    assert_eq!(noted().await, [second.object_key.unwrap()]);
    assert_eq!(files.sweep_files(Some(NOW + 1), NOW + 1).await.unwrap(), 1);
    assert_eq!(noted().await.len(), 2);

    let broken = FakeObjects { is_broken: true, ..FakeObjects::default() };
    let file = NewFile { objects: Some(&broken), digest: "d", ..new_file(BOB, "c") };
    assert!(matches!(files.put(&file).await, Err(StoreError::Unavailable(_))));
    assert_eq!(noted().await.len(), 3, "the object may be there in part");
    assert!(files.files(BOB, None, 10).await.unwrap().is_empty(), "{other:?}");
}
