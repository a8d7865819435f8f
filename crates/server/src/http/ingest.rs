//! Epochs come in.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use ucl_link::{Identity, MAX_ENVELOPE};

use super::problem::Problem;
use super::{Shared, allow, json};
use crate::tokens::Scope;

/// Handles `POST` of envelopes of one incarnation, laid end to end.
pub async fn ingest(
    State(app): Shared,
    Path((tenant, stream, incarnation)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let grant = app.grant(&headers)?;
    let name = |error: ucl_link::NameError| Problem::bad_request(error.to_string());
    let (tenant, stream) = (tenant.parse().map_err(name)?, stream.parse().map_err(name)?);
    let incarnation = incarnation.parse().map_err(|_| {
        Problem::bad_request(format!("{incarnation:?} is no incarnation: it has the form NUMBER-NONCE"))
    })?;
    allow(&grant, Scope::Write, &tenant, Some(&stream))?;
    let too_large = || {
        let detail = format!("a request has at most {MAX_ENVELOPE} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    // The room is taken before the body is read.
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let length = length.unwrap_or(MAX_ENVELOPE);
    if length > MAX_ENVELOPE {
        return Err(too_large());
    }
    let kilobytes = length.div_ceil(1_024) as u32;
    let room = app.body_room.try_acquire_many(kilobytes);
    let _room = room.map_err(|_| Problem::busy("too many bytes are waiting to be taken"))?;
    let body = axum::body::to_bytes(body, length).await.map_err(|_| too_large())?;
    let reply = app.core.submit(Identity { tenant, stream, incarnation }, body).await?;
    Ok(json(&reply))
}
