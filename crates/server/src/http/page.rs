//! The status page and the description of the API: files that are part of the program.

use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};

/// The description of the API, kept by hand; a test holds every answer against it.
const OPENAPI: &str = include_str!("../../openapi.json");
const PAGE: &str = include_str!("../../page/index.html");
const SCRIPT: &str = include_str!("../../page/page.js");
const STYLE: &str = include_str!("../../page/page.css");

/// Nothing from elsewhere, nothing inline, and no place in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn file(kind: &'static str, text: &'static str) -> Response {
    let head: [(HeaderName, &str); 5] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // A newer version brings other files.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (head, text).into_response()
}

/// `GET /`
pub async fn page() -> Response {
    file("text/html; charset=utf-8", PAGE)
}

/// `GET /page.js`
pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

/// `GET /page.css`
pub async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

/// `GET /v1/openapi.json`
pub async fn openapi() -> Response {
    file("application/json", OPENAPI)
}
