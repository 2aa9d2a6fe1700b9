//! The bytes of files at an object store: a folder, and an S3 server that checks signatures (`s3s-fs`, which `tests/run.sh --all`
//! installs and names in `AGUI_S3S_FS`).

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command},
    thread::sleep,
    time::{Duration, Instant},
};

use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::process::{client, command};
use crate::support::{running::input, server::Process};

const KEYS: [(&str, &str); 4] = [
    ("AGUI_AUTH__MODE", "api_key"),
    (
        "AGUI_AUTH__API_KEYS",
        "[{ name = \"ada\", env = \"KEY_A\" }, { name = \"bob\", env = \"KEY_B\" }]",
    ),
    ("KEY_A", "a"),
    ("KEY_B", "b"),
];

/// The number of objects below a folder.
fn objects(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    let count = |entry: fs::DirEntry| {
        let is_object = entry.file_name().to_string_lossy().starts_with("file_");
        if entry.file_type().unwrap().is_dir() {
            objects(&entry.path())
        } else {
            usize::from(is_object)
        }
    };
    entries.map(count).sum()
}

/// More than two parts, the last one shorter.
fn large() -> Vec<u8> {
    (0..20_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

struct Caller<'p>(&'p Process, &'static str);

impl Caller<'_> {
    async fn upload(&self, bytes: Vec<u8>) -> (StatusCode, Value) {
        let response = client()
            .post(format!("{}/files", self.0.url))
            .bearer_auth(self.1)
            .body(bytes)
            .send()
            .await
            .unwrap();
        (response.status(), response.json().await.unwrap())
    }

    async fn read(&self, id: &str, range: &str) -> Response {
        let request = client()
            .get(format!("{}/files/{id}", self.0.url))
            .bearer_auth(self.1)
            .header("range", range);
        request.send().await.unwrap()
    }

    async fn delete(&self, id: &str) -> StatusCode {
        let request = client().delete(format!("{}/files/{id}", self.0.url)).bearer_auth(self.1);
        request.send().await.unwrap().status()
    }

    async fn run(&self) -> String {
        let request = client()
            .post(format!("{}/send-message", self.0.url))
            .bearer_auth(self.1)
            .json(&input("count to 2"));
        request.send().await.unwrap().text().await.unwrap()
    }
}

/// Checks the promises of files, with their bytes in `folder`, which is behind the URL.
async fn check_promises(environment: &[(&str, &str)], data: &Path, folder: &Path) {
    let process = Process::start(&[], environment);
    let (ada, bob) = (Caller(&process, "a"), Caller(&process, "b"));
    let bytes = large();
    let (status, file) = ada.upload(bytes.clone()).await;
    assert_eq!(status, 201, "{file}");
    let id = file["id"].as_str().unwrap();
    assert_eq!(
        (ada.upload(bytes.clone()).await.0, objects(folder)),
        (StatusCode::OK, 1),
        "the same bytes are one file"
    );
    let (status, of_bob) = bob.upload(b"small".to_vec()).await;
    assert_eq!((status, objects(folder)), (StatusCode::CREATED, 2));
    let database: u64 =
        fs::read_dir(data).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(database < 5_000_000, "{database} bytes are beside the object store");

    assert_eq!(ada.read(id, "none").await.bytes().await.unwrap(), bytes);
    let part = ada.read(id, "bytes=8388600-8388700").await;
    assert_eq!(
        (part.status(), part.bytes().await.unwrap()),
        (StatusCode::PARTIAL_CONTENT, bytes[8_388_600..=8_388_700].to_vec().into())
    );
    assert_eq!(bob.read(id, "none").await.status(), 404);
    assert_eq!(bob.delete(id).await, 404);

    assert_eq!((ada.delete(id).await, objects(folder)), (StatusCode::NO_CONTENT, 1));
    assert_eq!(ada.read(id, "none").await.status(), 404);
    assert_eq!(ada.upload(bytes).await.0, 201);
    process.signal("-TERM");
    process.ended();
    let (code, _, error) = command(&["erase", "key:ada"], environment);
    assert_eq!((code, objects(folder)), (Some(0), 1), "{error}");

    let process = Process::start(&[], environment);
    let bytes = Caller(&process, "b")
        .read(of_bob["id"].as_str().unwrap(), "none")
        .await
        .bytes()
        .await
        .unwrap();
    assert_eq!(bytes, "small", "what is stored is there after a restart");
}

fn environment<'a>(data: &'a Path, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&KEYS[..], &[("AGUI_SERVER__DATA_DIR", data.to_str().unwrap())], more].concat()
}

#[tokio::test]
async fn a_folder_has_the_bytes_of_files() {
    let (data, objects) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = objects.path().join("new/files");
    let url = format!("file://{}", folder.display());
    check_promises(&environment(data.path(), &[("AGUI_FILES__URL", &url)]), data.path(), &folder)
        .await;
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&folder).unwrap().permissions())
            & 0o777,
        0o700
    );
}

/// An S3 server with one pair of keys, which is killed on drop.
struct S3Server(Child);

impl S3Server {
    fn start(program: &str, port: u16, root: &Path) -> Self {
        let mut command = Command::new(program);
        command.args([
            "--host",
            "127.0.0.1",
            "--access-key",
            "ak",
            "--secret-key",
            "right",
            "--port",
            &port.to_string(),
        ]);
        let server = Self(command.arg(root).env("RUST_LOG", "off").spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "the S3 server does not listen");
            sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn an_s3_server_has_the_bytes_of_files() {
    let Ok(program) = std::env::var("AGUI_S3S_FS") else { return };
    let (data, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = root.path().join("bucket");
    fs::create_dir(&folder).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let s3 = [
        ("AGUI_FILES__URL", "s3://bucket/a/b"),
        ("AWS_ENDPOINT", &endpoint),
        ("AWS_ACCESS_KEY_ID", "ak"),
    ];
    let right =
        environment(data.path(), &[&s3[..], &[("AWS_SECRET_ACCESS_KEY", "right")]].concat());
    let wrong =
        environment(data.path(), &[&s3[..], &[("AWS_SECRET_ACCESS_KEY", "wr0ng")]].concat());
    let server = S3Server::start(&program, port, root.path());
    check_promises(&right, data.path(), &folder).await;

    let process = Process::start(&[], &wrong);
    let ada = Caller(&process, "a");
    let (status, body) = ada.upload(b"denied".to_vec()).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"store_unavailable".into()),
        "{body}"
    );
    assert_eq!(objects(&folder), 1, "nothing was written");
    assert!(ada.run().await.contains("RUN_FINISHED"));
    process.signal("-TERM");
    let (_, log) = process.ended();
    assert!(log.contains("the object store s3://bucket/a/b: ") && !log.contains("wr0ng"), "{log}");

    let process = Process::start(&[], &right);
    let ada = Caller(&process, "a");
    let (_, file) = ada.upload(b"later".to_vec()).await;
    assert_eq!(objects(&folder), 2);
    drop(server);
    let begin = Instant::now();
    assert_eq!(ada.upload(b"unreachable".to_vec()).await.0, 503);
    assert_eq!(ada.read(file["id"].as_str().unwrap(), "none").await.status(), 503);
    assert!(ada.run().await.contains("RUN_FINISHED"));
    assert_eq!(
        ada.delete(file["id"].as_str().unwrap()).await,
        204,
        "the object is left to the next sweep"
    );
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    process.signal("-TERM");
    process.ended();
    let (code, _, error) = command(&["erase", "key:ada"], &right);
    assert_eq!(code, Some(1), "an object that may be there is no success: {error}");

    let _server = S3Server::start(&program, port, root.path());
    assert_eq!(objects(&folder), 2);
    let (code, _, error) = command(&["erase", "key:ada"], &right);
    assert_eq!((code, objects(&folder)), (Some(0), 1), "{error}");
}

#[test]
fn check_names_a_wrong_object_store() {
    for (url, problem) in [
        ("ftp://a/b", "is not a URL such as \"s3://bucket/path\""),
        ("s3://", "is not a URL such as"),
        ("file:relative", "is not a URL such as"),
        ("az://container/path", "cannot be used: "),
    ] {
        let (code, _, error) = command(&["check"], &[("AGUI_FILES__URL", url)]);
        assert_eq!(code, Some(2), "{url}");
        assert!(error.contains("files.url") && error.contains(problem), "{error}");
    }
    let (code, _, error) =
        command(&["check"], &[("AGUI_FILES__URL", "s3://bucket"), ("AGUI_STORE__URL", "memory:")]);
    assert!(code == Some(2) && error.contains("keeps files in memory"), "{error}");
}
