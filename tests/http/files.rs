//! `/files`: what clients upload, read and delete.

use std::{collections::BTreeSet, path::Path};

use agui_server::{
    Server,
    agent::builtin::Echo,
    auth::ApiKey,
    options::{HttpOptions, ThreadOptions},
    store::SqliteStore,
};
use futures::future::join_all;
use reqwest::{Method, RequestBuilder, Response, header};
use serde_json::{Value, json};

use crate::support::{
    conversation::{ask, changed_options, refusal},
    running::{Running, eventually_async},
};

const ANN: &str = "ann's key";
const BOB: &str = "bob's key";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x06";

async fn start_with(change: impl FnOnce(&mut ThreadOptions)) -> Running {
    let keys = [ApiKey::from_secret("ann", ANN), ApiKey::from_secret("bob", BOB)];
    let http = HttpOptions { max_body_bytes: 100_000, ..HttpOptions::default() };
    let server = Server::new().agent("echo", Echo).api_keys(keys).http_options(http);
    Running::start(server.thread_options(changed_options(change))).await
}

async fn start() -> Running {
    start_with(|_| {}).await
}

trait Requests {
    fn request(&self, key: &str, method: Method, path: &str) -> RequestBuilder;
    async fn upload(&self, key: &str, bytes: impl Into<Vec<u8>>, media_type: &str) -> Response;
    async fn uploaded(&self, key: &str, bytes: impl Into<Vec<u8>>, media_type: &str) -> Value;
}

impl Requests for Running {
    fn request(&self, key: &str, method: Method, path: &str) -> RequestBuilder {
        let url = if path.starts_with("http") { path.to_owned() } else { self.url(path) };
        let request = self.client.request(method, url);
        if key.is_empty() { request } else { request.bearer_auth(key) }
    }

    async fn upload(&self, key: &str, bytes: impl Into<Vec<u8>>, media_type: &str) -> Response {
        let request =
            self.request(key, Method::POST, "/files").header(header::CONTENT_TYPE, media_type);
        request.body(bytes.into()).send().await.unwrap()
    }

    async fn uploaded(&self, key: &str, bytes: impl Into<Vec<u8>>, media_type: &str) -> Value {
        let response = self.upload(key, bytes, media_type).await;
        assert!(response.status().is_success(), "{}", response.status());
        response.json().await.unwrap()
    }
}

fn path_of(file: &Value) -> String {
    format!("/files/{}", file["id"].as_str().unwrap())
}

fn text<'r>(response: &'r Response, name: &str) -> &'r str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_file_is_stored_once_listed_read_and_deleted() {
    let server = start().await;
    let post = || {
        server
            .request(ANN, Method::POST, "/files")
            .header(header::CONTENT_TYPE, "image/jpeg")
            .body(PNG)
    };
    let first = post()
        .header(header::CONTENT_DISPOSITION, "attachment; filename*=UTF-8''%C3%A9.png")
        .send();
    let first = first.await.unwrap();
    assert_eq!(first.status(), 201);
    let file: Value = first.json().await.unwrap();
    let url = file["url"].as_str().unwrap();
    for (member, expected) in [
        ("mimeType", json!("image/png")),
        ("name", json!("é.png")),
        ("bytes", json!(PNG.len())),
        ("width", json!(2)),
        ("height", json!(3)),
        (
            "part",
            json!({
                "type": "image", "source": { "type": "url", "value": url, "mimeType": "image/png" },
                "metadata": { "filename": "é.png" },
            }),
        ),
    ] {
        assert_eq!(file[member], expected, "{member}");
    }
    let again = post().send().await.unwrap();
    assert_eq!(
        (again.status().as_u16(), again.json::<Value>().await.unwrap()["id"].clone()),
        (200, file["id"].clone())
    );
    server.uploaded(ANN, "hello", "text/plain; charset=utf-8").await;
    let list = async |query: &str| -> Value {
        server
            .request(ANN, Method::GET, &format!("/files{query}"))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    };
    let page = list("?limit=1").await;
    assert_eq!(page["files"][0]["mimeType"], "text/plain");
    let next = list(&format!("?limit=1&cursor={}", page["next"].as_str().unwrap())).await;
    assert_eq!((&next["files"][0]["id"], next.get("next")), (&file["id"], None));
    let read = server.request(ANN, Method::GET, &path_of(&file)).send().await.unwrap();
    assert_eq!(text(&read, "content-type"), "image/png");
    assert_eq!(text(&read, "x-content-type-options"), "nosniff");
    assert_eq!(
        text(&read, "content-disposition"),
        "inline; filename=\"_.png\"; filename*=UTF-8''%C3%A9%2Epng"
    );
    assert!(text(&read, "content-security-policy").ends_with("sandbox"));
    assert_eq!(read.bytes().await.unwrap(), PNG);
    for method in [Method::GET, Method::HEAD, Method::DELETE] {
        let other = server.request(BOB, method.clone(), &path_of(&file)).send().await.unwrap();
        assert_eq!(other.status(), 404, "{method}");
    }
    let delete =
        async || server.request(ANN, Method::DELETE, &path_of(&file)).send().await.unwrap();
    assert_eq!(
        (delete().await.status().as_u16(), refusal(delete().await).await),
        (204, (404, "unknown_file".to_owned()))
    );
    assert_eq!(list("").await["files"].as_array().unwrap().len(), 1);
    for path in ["/files/x", "/files/file_00000000000000000000000000000000", "/files/%00"] {
        let unknown = server.request(ANN, Method::GET, path).send().await.unwrap();
        assert_eq!(refusal(unknown).await, (404, "unknown_file".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_form_uploads_its_first_file() {
    let server = start().await;
    let form = |content: &str| format!("--b\r\n{content}\r\n--b--\r\n").into_bytes();
    let media_type = "multipart/form-data; boundary=\"b\"";
    let part = "Content-Disposition: form-data; name=\"file\"; filename=\"C:\\\\a.csv\"\r\nContent-Type: text/csv\r\n\r\na,b\r\n";
    let file = server.uploaded(ANN, form(part), media_type).await;
    assert_eq!(
        (&file["name"], &file["mimeType"], &file["bytes"]),
        (&json!("a.csv"), &json!("text/csv"), &json!(5))
    );
    for (body, media_type) in [
        (form("Content-Disposition: form-data; name=\"a\"\r\n\r\nb"), media_type),
        (form(part), "multipart/form-data"),
        (form(part), "multipart/form-data; boundary=c"),
        (b"--b\r\n".to_vec(), media_type),
    ] {
        assert_eq!(
            refusal(server.upload(ANN, body, media_type).await).await,
            (400, "invalid_input".to_owned())
        );
    }
}

#[tokio::test]
async fn ranges_and_copies_save_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("a.db")).await.unwrap();
    let server = Running::start(Server::new().agent("echo", Echo).store(store)).await;
    let bytes: Vec<u8> = (0..700_000_u32).map(|n| (n / 251 + n) as u8).collect();
    let file = server.uploaded("", &*bytes, "").await;
    let get = async |method: Method, headers: &[(&str, &str)]| {
        let request = server.request("", method, &path_of(&file));
        headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .send()
            .await
            .unwrap()
    };
    let whole = get(Method::GET, &[]).await;
    assert_eq!((whole.status().as_u16(), text(&whole, "content-length")), (200, "700000"));
    assert_eq!(text(&whole, "content-disposition").split(';').next(), Some("attachment"));
    let etag = text(&whole, "etag").to_owned();
    assert!(whole.bytes().await.unwrap() == bytes);
    let head = get(Method::HEAD, &[]).await;
    assert_eq!(
        (head.status().as_u16(), text(&head, "content-length"), text(&head, "etag")),
        (200, "700000", &*etag)
    );
    assert_eq!(get(Method::GET, &[("if-none-match", &etag)]).await.status(), 304);
    for (range, expected) in
        [("bytes=262143-524290", 262_143..524_291), ("bytes=-5", 699_995..700_000)]
    {
        let part = get(Method::GET, &[("range", range), ("if-range", &etag)]).await;
        assert_eq!(part.status(), 206);
        let of_whole = format!("bytes {}-{}/700000", expected.start, expected.end - 1);
        assert_eq!(text(&part, "content-range"), of_whole);
        assert!(part.bytes().await.unwrap() == bytes[expected]);
    }
    assert_eq!(
        get(Method::GET, &[("range", "bytes=0-1"), ("if-range", "\"x\"")]).await.status(),
        200
    );
    let beyond = get(Method::GET, &[("range", "bytes=700000-")]).await;
    assert_eq!(text(&beyond, "content-range"), "bytes */700000");
    assert_eq!(refusal(beyond).await, (416, "range_not_satisfiable".to_owned()));
}

#[tokio::test]
async fn a_signed_url_opens_one_file_and_nothing_else() {
    let server = start().await;
    let [file, other] =
        [server.uploaded(ANN, PNG, "").await, server.uploaded(ANN, "other", "").await];
    let url = file["url"].as_str().unwrap();
    let image = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-dest", "image"),
    ];
    let send = async |method: Method, url: &str| {
        let request = server.request("", method, url);
        image
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .send()
            .await
            .unwrap()
    };
    let opened = send(Method::GET, url).await;
    assert_eq!(opened.status(), 200, "an <img> of a page of another site");
    assert_eq!(opened.bytes().await.unwrap(), PNG);
    assert_eq!(send(Method::HEAD, url).await.status(), 200);
    let query = url.split_once('?').unwrap().1;
    let (expires, signature) = query.split_once('&').unwrap();
    for wrong in [
        format!("{}?{query}", path_of(&other)),
        format!("{}?expires=99999999999&{signature}", path_of(&file)),
        format!("{}?{expires}&{signature}A", path_of(&file)),
        format!("{}?{expires}&signature=", path_of(&file)),
        format!("{}?{signature}", path_of(&file)),
        format!("/files/x?{query}"),
    ] {
        assert_eq!(send(Method::GET, &wrong).await.status(), 403, "{wrong}");
        let program = server.request("", Method::GET, &wrong).send().await.unwrap();
        assert_eq!(refusal(program).await, (403, "invalid_signature".to_owned()), "{wrong}");
    }
    let owned =
        server.request(ANN, Method::GET, &format!("{}?{expires}&signature=x", path_of(&file)));
    assert_eq!(owned.send().await.unwrap().status(), 200, "the owner needs no signature");
    for (method, path) in [
        (Method::DELETE, url.to_owned()),
        (Method::GET, path_of(&file)),
        (Method::GET, format!("/files?{query}")),
        (Method::POST, format!("/files?{query}")),
        (Method::GET, format!("/threads?{query}")),
    ] {
        let refused = server.request("", method.clone(), &path).send().await.unwrap();
        assert_eq!(refused.status(), 401, "{method} {path}");
    }
    let foreign =
        server.request("", Method::GET, &path_of(&file)).header("sec-fetch-site", "cross-site");
    assert_eq!(
        refusal(foreign.send().await.unwrap()).await,
        (403, "origin_not_allowed".to_owned())
    );
}

#[tokio::test]
async fn a_wrong_signature_lets_no_foreign_page_in_without_authentication() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let file = server.uploaded("", PNG, "").await;
    let (signed, path) = (file["url"].as_str().unwrap(), path_of(&file));
    let is_refused = async |url: &str| {
        let foreign = server.request("", Method::GET, url).header("sec-fetch-site", "cross-site");
        let rebound = server.request("", Method::GET, url).header(header::HOST, "evil.example");
        let codes =
            [foreign, rebound].map(async |request| request.send().await.unwrap().status().as_u16());
        join_all(codes).await == [403, 403]
    };
    assert!(!is_refused(signed).await);
    let expires = signed.split_once('?').unwrap().1.split_once('&').unwrap().0;
    for query in [
        "signature=x",
        "xsignature=1",
        "x=signature=",
        "expires=x&signature=x",
        "signature=",
        "signature=1&signature=2",
    ] {
        assert!(is_refused(&format!("{path}?{query}")).await, "{query}");
    }
    assert!(is_refused(&format!("{path}?{expires}&xsignature=1")).await);
    assert!(
        is_refused(&format!("/files/none?{}", signed.split_once('?').unwrap().1)).await,
        "of another file"
    );
    assert!(is_refused("/files/a/b?signature=x").await && is_refused("/files?signature=x").await);
}

#[tokio::test]
async fn nothing_with_scripts_is_shown_as_a_page() {
    let server = start().await;
    for (bytes, declared, media_type, kind) in [
        (&b"<html><script>alert(1)</script>"[..], "text/html", "text/html", "attachment"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/png", "image/svg+xml", "attachment"),
        (b"<html>", "image/png", "image/png", "inline"),
        (b"%PDF-1.7", "text/html\r\nx: y", "application/pdf", "inline"),
        (b"x", "a b/c", "application/octet-stream", "attachment"),
    ] {
        let declared = declared.replace("\r\n", " ");
        let file = server.uploaded(ANN, bytes, &declared).await;
        let read = server.request(ANN, Method::GET, &path_of(&file)).send().await.unwrap();
        assert_eq!(
            (text(&read, "content-type"), text(&read, "x-content-type-options")),
            (media_type, "nosniff")
        );
        assert_eq!(
            text(&read, "content-disposition").split(';').next(),
            Some(kind),
            "{media_type}"
        );
        assert!(text(&read, "content-security-policy").starts_with("default-src 'none'"));
    }
}

#[tokio::test]
async fn a_file_that_messages_use_is_deleted_only_by_force() {
    let server = start().await;
    let file = server.uploaded(ANN, PNG, "").await;
    let source = json!({ "type": "file", "provider": "agui-server", "value": file["id"], "mimeType": "image/png" });
    let content = json!([{ "type": "text", "text": "see" }, { "type": "image", "source": source }]);
    let input = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": content }] });
    let run = server.request(ANN, Method::POST, "/send-message").json(&input).send().await.unwrap();
    assert!(run.text().await.unwrap().contains("RUN_FINISHED"));
    let delete = async |query: &str| {
        server
            .request(ANN, Method::DELETE, &format!("{}{query}", path_of(&file)))
            .send()
            .await
            .unwrap()
    };
    assert_eq!(refusal(delete("").await).await, (409, "file_in_use".to_owned()));
    assert_eq!(refusal(delete("?force=false").await).await, (409, "file_in_use".to_owned()));
    assert_eq!(delete("?force").await.status(), 204);
    let file = server.uploaded(ANN, "again", "").await;
    assert_eq!(server.request(ANN, Method::DELETE, "/threads").send().await.unwrap().status(), 200);
    let read = server.request(ANN, Method::GET, &path_of(&file)).send().await.unwrap();
    assert_eq!(
        refusal(read).await,
        (404, "unknown_file".to_owned()),
        "all files go with all threads"
    );
}

#[tokio::test]
async fn files_are_limited_by_their_size_their_owner_and_in_all() {
    let server = start_with(|options| {
        options.files.max_file_bytes = 200_000;
        (options.files.owner_bytes, options.files.bytes) = (Some(300_000), Some(410_000));
    })
    .await;
    let upload = async |key, length: usize| {
        let response = server.upload(key, vec![length as u8; length], "").await;
        if response.status().is_success() { (200, String::new()) } else { refusal(response).await }
    };
    let refused = |status, code: &str| (status, code.to_owned());
    assert_eq!(upload(ANN, 200_001).await, refused(413, "file_too_large"));
    assert_eq!(upload(ANN, 0).await, refused(400, "file_empty"));
    assert_eq!(upload(ANN, 200_000).await.0, 200, "more than max_body_bytes");
    assert_eq!(upload(ANN, 100_001).await, refused(413, "too_many_file_bytes"));
    assert_eq!(upload(BOB, 200_000).await.0, 200);
    assert_eq!(upload(ANN, 5000).await, refused(507, "file_storage_full"));
    let pieces = futures::stream::iter((0..60).map(|_| Ok::<_, std::io::Error>(vec![0; 4096])));
    let chunked =
        server.request(ANN, Method::POST, "/files").body(reqwest::Body::wrap_stream(pieces));
    assert_eq!(refusal(chunked.send().await.unwrap()).await, refused(413, "file_too_large"));
    let encoded = server
        .request(ANN, Method::POST, "/files")
        .header(header::CONTENT_ENCODING, "gzip")
        .body("x");
    assert_eq!(
        refusal(encoded.send().await.unwrap()).await,
        refused(415, "unsupported_content_encoding")
    );
}

#[tokio::test]
async fn the_number_of_files_is_limited_of_an_owner_and_in_all() {
    let server =
        start_with(|options| (options.files.owner_files, options.files.files) = (Some(2), Some(3)))
            .await;
    let upload = async |key, text: &'static str| server.upload(key, text, "").await;
    for text in ["a", "b"] {
        assert_eq!(upload(ANN, text).await.status(), 201);
    }
    assert_eq!(refusal(upload(ANN, "c").await).await, (413, "too_many_files".to_owned()));
    assert_eq!(upload(ANN, "a").await.status(), 200, "it is there");
    assert_eq!(upload(BOB, "a").await.status(), 201);
    assert_eq!(refusal(upload(BOB, "b").await).await, (507, "file_storage_full".to_owned()));
}

#[tokio::test]
async fn files_count_for_the_stored_bytes_of_their_owner() {
    let server = start_with(|options| options.retention.owner_bytes = Some(3000)).await;
    let file = server.uploaded(ANN, vec![1; 3000], "").await;
    assert_eq!(
        refusal(server.upload(ANN, "more", "").await).await,
        (413, "too_many_stored_bytes".to_owned())
    );
    assert_eq!(
        server.request(ANN, Method::DELETE, &path_of(&file)).send().await.unwrap().status(),
        204
    );
    server.uploaded(ANN, "more", "").await;
}

#[tokio::test]
async fn a_sweep_removes_what_no_thread_uses() {
    // The limit is so low that each new thread is followed by a sweep.
    let server = start_with(|options| {
        (options.files.unused_age, options.retention.owner_threads) = (Some(1), Some(20));
    })
    .await;
    let file = server.uploaded(ANN, PNG, "").await;
    let threads = std::sync::atomic::AtomicUsize::new(0);
    eventually_async("a sweep", async || {
        let thread = threads.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string();
        let run = server
            .request(ANN, Method::POST, "/send-message")
            .json(&ask(&thread, "r", "m", "hello"));
        run.send().await.unwrap().text().await.unwrap();
        let read = server.request(ANN, Method::GET, &path_of(&file)).send().await.unwrap();
        read.status() == 404
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_uploads_at_once_are_bounded_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_in(folder.path()).await;
    let bytes = |n: usize| vec![n as u8; 300_000 + n];
    let uploads = join_all((0..200).map(async |n| {
        let response = server.upload(if n % 2 == 0 { ANN } else { BOB }, bytes(n), "").await;
        let status = response.status().as_u16();
        assert!(matches!(status, 201 | 503), "{status}");
        (status == 201).then_some(n)
    }));
    let stored: BTreeSet<_> = uploads.await.into_iter().flatten().collect();
    assert!(stored.len() >= 4, "{}", stored.len());
    let mut found = BTreeSet::new();
    for key in [ANN, BOB] {
        let list = server.request(key, Method::GET, "/files?limit=200").send().await.unwrap();
        for file in list.json::<Value>().await.unwrap()["files"].as_array().unwrap() {
            let read = server
                .request("", Method::GET, file["url"].as_str().unwrap())
                .send()
                .await
                .unwrap();
            let read = read.bytes().await.unwrap();
            let n = read.len() - 300_000;
            assert!(read == bytes(n));
            found.insert(n);
        }
    }
    assert_eq!(found, stored);
}

async fn start_in(folder: &Path) -> Running {
    let keys = [ApiKey::from_secret("ann", ANN), ApiKey::from_secret("bob", BOB)];
    let store = SqliteStore::open(&folder.join("a.db")).await.unwrap();
    let http = HttpOptions {
        max_body_bytes_in_flight: 4_000_000,
        max_body_bytes: 400_000,
        ..HttpOptions::default()
    };
    let options = changed_options(|options| options.files.max_file_bytes = 400_000);
    let server = Server::new().agent("echo", Echo).store(store).api_keys(keys).http_options(http);
    Running::start(server.thread_options(options)).await
}
