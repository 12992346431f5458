//! A small HTTP client for services that are asked and watched: one base address, a limit on time and size of everything,
//! answers that stream line by line.
//!
//! Connections are kept and shared. Over TLS, certificates follow their files.

mod body;
mod connect;

pub use body::{Lines, MAX_LINE};

use bytes::Bytes;
use connect::Connector;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue};
use http::uri::{PathAndQuery, Scheme};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use muxgate_rpc::tls::{ClientFiles, ClientTls, LOOK_EVERY};
use serde::de::DeserializeOwned;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Time to connect, handshake included.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Time for a request to be answered, if nothing else is said.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Most that is read of an answer that does not stream: a list of tens of thousands of endpoints fits.
pub const MAX_ANSWER: usize = 64 << 20;

/// Most of an answer's text that a message quotes.
const MAX_QUOTED: usize = 200;

/// Why there is no answer. Says what was asked, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError {
    /// The status, if it was answered at all.
    pub status: Option<StatusCode>,
    /// For people.
    pub text: String,
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for HttpError {}

/// Where a service is, and how it is talked to.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Such as `http://127.0.0.1:2379`.
    pub base: String,
    /// Goes with `https`.
    pub tls: Option<Tls>,
    /// Who we are.
    pub credentials: Credentials,
}

/// How the connections to a service are encrypted.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Whom we believe, and what we show.
    pub files: ClientFiles,
    /// The name that its certificate must be for.
    pub name: String,
}

/// Who we are to the service.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Credentials {
    /// Nobody in particular.
    #[default]
    None,
    /// A header of every request, such as `X-Consul-Token`.
    Header(http::HeaderName, HeaderValue),
    /// A bearer token in a file, which is read again for each request: it may be replaced at any time.
    TokenFile(PathBuf),
}

/// A service.
#[derive(Clone)]
pub struct Http {
    base: Uri,
    client: Client<Connector, Full<Bytes>>,
    credentials: Credentials,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Http").field(&self.base).finish()
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status, whatever it is.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its whole content.
    pub body: Bytes,
}

impl Http {
    /// A client of a service. Must be called on a runtime.
    ///
    /// # Errors
    /// Those of [`Http::new`], and files that cannot be used.
    pub fn open(params: &Params) -> Result<Self, HttpError> {
        let start = |tls: &Tls| {
            let started = ClientTls::start(tls.files.clone(), LOOK_EVERY, Arc::new(()));
            started.map(|started| started.named(&tls.name))
        };
        let tls = params.tls.as_ref().map(start).transpose();
        let tls = tls.map_err(|error| HttpError { status: None, text: error.to_string() })?;
        Self::new(&params.base, tls, params.credentials.clone())
    }

    /// A client of the service at `base`, such as `http://127.0.0.1:2379`; a path in it stands before all paths. `https` needs
    /// `tls`, with the service's name.
    ///
    /// # Errors
    /// A base that has no host, or a scheme that does not fit `tls`.
    pub fn new(base: &str, tls: Option<ClientTls>, credentials: Credentials) -> Result<Self, HttpError> {
        let wrong = |text: String| HttpError { status: None, text };
        let base: Uri = base.parse().map_err(|error| wrong(format!("{base}: {error}")))?;
        match (base.scheme(), &tls) {
            (Some(scheme), None) if *scheme == Scheme::HTTP => {}
            (Some(scheme), Some(_)) if *scheme == Scheme::HTTPS => {}
            (Some(scheme), None) if *scheme == Scheme::HTTPS => {
                return Err(wrong(format!("{base}: https needs `tls`: whom do we believe?")));
            }
            _ => return Err(wrong(format!("{base}: want http://host:port or https://host:port"))),
        }
        let client = Client::builder(TokioExecutor::new()).build(Connector::new(tls));
        Ok(Self { base, client, credentials })
    }

    /// Where the service is.
    pub fn base(&self) -> &Uri {
        &self.base
    }

    /// Asks for `path` (with its query) and reads the whole answer, within `within`.
    ///
    /// # Errors
    /// No answer in time, or one beyond [`MAX_ANSWER`]. Every status is an answer.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
        within: Duration,
    ) -> Result<Answer, HttpError> {
        let exchange = async {
            let answer = self.start(&method, path, headers, body.into()).await?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await;
            let body = body.map_err(|error| self.error(&method, path, &*error))?.to_bytes();
            Ok(Answer { status: parts.status, headers: parts.headers, body })
        };
        timeout(within, exchange).await.unwrap_or_else(|_| Err(self.late(&method, path, within)))
    }

    /// GETs JSON; gives the headers, too.
    ///
    /// # Errors
    /// As [`Http::send`]; and another status than 200, or JSON that is not what is wanted.
    pub async fn json<T: DeserializeOwned>(
        &self,
        path: &str,
        within: Duration,
    ) -> Result<(T, HeaderMap), HttpError> {
        let answer = self.send(Method::GET, path, HeaderMap::new(), Bytes::new(), within).await?;
        self.expect_ok(&Method::GET, path, &answer)?;
        let read = serde_json::from_slice(&answer.body);
        let value = read.map_err(|error| self.error(&Method::GET, path, &error))?;
        Ok((value, answer.headers))
    }

    /// Asks for something that goes on for ever, line by line. `within` bounds the time to its beginning only.
    ///
    /// # Errors
    /// No answer in time, or another status than 200.
    pub async fn lines(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
        within: Duration,
    ) -> Result<Lines, HttpError> {
        let answer = timeout(within, self.start(&method, path, headers, body.into())).await;
        let answer = answer.unwrap_or_else(|_| Err(self.late(&method, path, within)))?;
        if answer.status() == StatusCode::OK {
            return Ok(Lines::new(answer.into_body(), self.what(&method, path)));
        }
        let (parts, body) = answer.into_parts();
        let read = timeout(within, Limited::new(body, MAX_ANSWER).collect()).await;
        let body = read.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
        Err(self.refused(&method, path, &Answer { status: parts.status, headers: parts.headers, body }))
    }

    /// # Errors
    /// If the status is not 200: with what the answer says.
    pub fn expect_ok(&self, method: &Method, path: &str, answer: &Answer) -> Result<(), HttpError> {
        if answer.status == StatusCode::OK { Ok(()) } else { Err(self.refused(method, path, answer)) }
    }

    fn refused(&self, method: &Method, path: &str, answer: &Answer) -> HttpError {
        let said = String::from_utf8_lossy(&answer.body);
        let said: String = said.trim().chars().take(MAX_QUOTED).collect();
        let text = format!("{}: {} {said}", self.what(method, path), answer.status);
        HttpError { status: Some(answer.status), text: text.trim_end().into() }
    }

    async fn start(
        &self,
        method: &Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<http::Response<hyper::body::Incoming>, HttpError> {
        let mut parts = self.base.clone().into_parts();
        let whole = format!("{}{path}", self.base.path().trim_end_matches('/'));
        let wrong = |error: &dyn fmt::Display| self.error(method, path, error);
        parts.path_and_query = Some(whole.parse::<PathAndQuery>().map_err(|error| wrong(&error))?);
        let uri = Uri::from_parts(parts).map_err(|error| wrong(&error))?;
        let mut request = Request::builder().method(method.clone()).uri(uri);
        if let Some(own) = request.headers_mut() {
            *own = headers;
            if let Some(host) = self.base.authority().and_then(|host| host.as_str().parse().ok()) {
                own.entry(HOST).or_insert(host);
            }
            self.sign(own).await.map_err(|error| wrong(&error))?;
        }
        let request = request.body(Full::new(body)).map_err(|error| wrong(&error))?;
        self.client.request(request).await.map_err(|error| wrong(&Chain(&error)))
    }

    async fn sign(&self, headers: &mut HeaderMap) -> Result<(), String> {
        match &self.credentials {
            Credentials::None => {}
            Credentials::Header(name, value) => {
                headers.insert(name.clone(), value.clone());
            }
            Credentials::TokenFile(path) => {
                let said = |error: &dyn fmt::Display| format!("token in {}: {error}", path.display());
                let token = tokio::fs::read_to_string(path).await.map_err(|error| said(&error))?;
                let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
                headers.insert(AUTHORIZATION, value.map_err(|error| said(&error))?);
            }
        }
        Ok(())
    }

    fn what(&self, method: &Method, path: &str) -> String {
        format!("{method} {}{path}", self.base.to_string().trim_end_matches('/'))
    }

    fn error(&self, method: &Method, path: &str, error: &(impl fmt::Display + ?Sized)) -> HttpError {
        HttpError { status: None, text: format!("{}: {error}", self.what(method, path)) }
    }

    fn late(&self, method: &Method, path: &str, within: Duration) -> HttpError {
        let text = format!("{}: no answer within {} s", self.what(method, path), within.as_secs_f64());
        HttpError { status: None, text }
    }
}

/// An error with its causes: those of HTTP clients say little without.
struct Chain<'a>(&'a dyn std::error::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
