//! The store as a process: what its users see over HTTP.

mod codes;
mod durable;
mod follow;
mod gateways;
mod hostile;
mod meaning;
mod past;
mod readme;
mod rights;
mod watch;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use muxgate::outside::http::{Answer, Credentials, Http, Lines};
use muxgate_testkit::Proc;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take, on a machine that builds beside it.
const WITHIN: Duration = Duration::from_secs(30);

/// A running store.
struct Store {
    proc: Proc,
    base: String,
    http: Http,
}

impl Store {
    /// With its tables in `data`, on a free port.
    fn start(data: &Path) -> Self {
        Self::run(&["--listen", "127.0.0.1:0", "--data", &data.to_string_lossy()])
    }

    /// With a file; `listen` in it must have port 0, and no TLS.
    fn of_file(folder: &Path, text: &str) -> Self {
        let file = folder.join("store.yaml");
        std::fs::write(&file, text).expect("the file is written");
        Self::run(&[&file.to_string_lossy()])
    }

    fn run(args: &[&str]) -> Self {
        let mut all = vec!["store"];
        all.extend(args);
        let proc = Proc::start("store", env!("CARGO_BIN_EXE_muxgate"), all, &[]);
        let address =
            proc.wait_line("its address", WITHIN, |line| line.strip_prefix("store ").map(str::to_owned));
        let base = format!("http://{address}");
        let http = Http::new(&base, None, Credentials::None).expect("an address");
        Self { proc, base, http }
    }

    async fn send(&self, method: Method, path: &str, headers: &[(HeaderName, &str)], body: &str) -> Answer {
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).expect("a header's value")));
        let headers: HeaderMap = pairs.collect();
        let body = Bytes::copy_from_slice(body.as_bytes());
        let answer = self.http.send(method, path, headers, body, WITHIN).await;
        answer.unwrap_or_else(|error| panic!("{error}\n{}", self.proc.report()))
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", text(&answer));
        serde_json::from_slice(&answer.body).expect("JSON")
    }

    /// The table as text, with its tag.
    async fn dtab(&self, namespace: &str) -> (String, String) {
        let answer = self.send(Method::GET, &dtab(namespace), &[(ACCEPT, "application/dtab")], "").await;
        assert_eq!(answer.status, StatusCode::OK, "{}", text(&answer));
        (text(&answer), tag(&answer))
    }

    async fn post(&self, namespace: &str, table: &str) -> Answer {
        self.send(Method::POST, &dtab(namespace), &[DTAB], table).await
    }

    async fn put(&self, namespace: &str, table: &str) -> Answer {
        self.send(Method::PUT, &dtab(namespace), &[DTAB], table).await
    }

    async fn lines(&self, path: &str) -> Lines {
        let lines = self.http.lines(Method::GET, path, HeaderMap::new(), Bytes::new(), WITHIN).await;
        lines.unwrap_or_else(|error| panic!("{error}\n{}", self.proc.report()))
    }

    /// Ends it as an operator does.
    fn stop(self) {
        self.proc.terminate();
        let status = self.proc.wait(WITHIN);
        assert!(status.success(), "{status}\n{}", self.proc.report());
    }
}

const DTAB: (HeaderName, &str) = (CONTENT_TYPE, "application/dtab");

fn dtab(namespace: &str) -> String {
    format!("/api/1/dtabs/{namespace}")
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).expect("text")
}

fn tag(answer: &Answer) -> String {
    answer.headers[ETAG].to_str().expect("a tag").to_owned()
}

async fn next(lines: &mut Lines) -> String {
    let line = tokio::time::timeout(WITHIN, lines.next()).await.expect("a line in time");
    let line = line.expect("the stream goes on").expect("a line");
    String::from_utf8(line.to_vec()).expect("text")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}
