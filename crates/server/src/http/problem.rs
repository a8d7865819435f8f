//! Errors as `application/problem+json` (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::core::CoreError;

/// The type of the body.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// Reason why a request was not answered.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    retry_after: Option<u32>,
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None }
    }

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    fn later(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub fn busy(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, detail).later(1)
    }
}

impl From<CoreError> for Problem {
    fn from(error: CoreError) -> Self {
        let detail = error.to_string();
        match error {
            CoreError::Busy | CoreError::UnderWay => Self::busy(detail),
            CoreError::Unavailable(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).later(5),
            CoreError::OnNats => Self::new(StatusCode::CONFLICT, detail),
            CoreError::Rejected(_) => Self::bad_request(detail),
            CoreError::Collector(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, detail, retry_after } = self;
        let title = status.canonical_reason().unwrap_or("Error");
        let body = Body { r#type: "about:blank", title, status: status.as_u16(), detail: &detail };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
