//! Epochs come in.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
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
    let body = app.bodies.take(&tenant, &headers, body, MAX_ENVELOPE).await?;
    let reply = app.cores.submit(Identity { tenant, stream, incarnation }, body).await?;
    Ok(json(&reply))
}
