//! Why a request is not done, as an answer.

use super::storage::StorageError;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

/// A status, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub StatusCode, pub String);

impl Refusal {
    pub(super) fn bad(text: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, text.into())
    }

    pub(super) fn absent(namespace: &str) -> Self {
        Self(StatusCode::NOT_FOUND, format!("there is no namespace `{namespace}`"))
    }

    pub(super) fn later(text: impl Into<String>) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, text.into())
    }

    /// With namerd's codes.
    pub(super) fn of(error: StorageError, namespace: &str) -> Self {
        match error {
            StorageError::Exists => {
                Self(StatusCode::CONFLICT, format!("there is a namespace `{namespace}` already"))
            }
            StorageError::Missing => Self::absent(namespace),
            StorageError::Differs => {
                let text =
                    format!("the table of `{namespace}` has another version by now than If-Match says");
                Self(StatusCode::PRECONDITION_FAILED, text)
            }
            StorageError::Refused(why) => Self(StatusCode::FORBIDDEN, format!("the storage refuses: {why}")),
            error @ StorageError::Unavailable(_) => Self::later(error.to_string()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = format!("{}\n", self.1.trim_end());
        let mut response = (self.0, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response();
        if self.0 == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"muxgate store\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response
    }
}
