//! The HTTP API. Handlers translate only: they parse, call one function of the core, and map the
//! result.

mod answer;
mod ask;
mod ingest;
mod params;
mod problem;
mod question;
mod streams;
mod time;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tokio::sync::Semaphore;
use ucl_link::Name;

use crate::config::Config;
use crate::core::Core;
use crate::tokens::{Grant, Scope, Tokens};
use problem::Problem;

/// How long a request may take to arrive and be answered.
const PATIENCE: Duration = Duration::from_secs(60);

/// What handlers share.
pub struct App {
    pub core: Core,
    pub tokens: Tokens,
    pub config: Config,
    /// Kilobytes of bodies that may be in memory at once.
    pub body_room: Arc<Semaphore>,
}

type Shared = State<Arc<App>>;

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/v1/{tenant}/streams", get(streams::streams))
        .route("/v1/{tenant}/estimate", get(ask::estimate).post(ask::estimate_many))
        .route("/v1/{tenant}/top", get(ask::top))
        .route("/v1/{tenant}/changes", get(ask::changes))
        .route("/v1/{tenant}/series", get(ask::series))
        .route("/v1/{tenant}/prefix", get(ask::prefix))
        .route("/v1/{tenant}/{stream}/{incarnation}", post(ingest::ingest))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is nothing at this address"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this address does not take this method")
        })
        .layer(from_fn(in_time))
        .with_state(app)
}

/// Nobody holds a connection for ever.
async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(PATIENCE, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(StatusCode::REQUEST_TIMEOUT, "the request took too long").into_response(),
    }
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(app): Shared) -> Result<&'static str, Problem> {
    if app.core.is_ready() {
        Ok("ready\n")
    } else {
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the collector is not open"))
    }
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

impl App {
    /// Who asks, if that is allowed.
    fn authorize(
        &self,
        headers: &HeaderMap,
        scope: Scope,
        tenant: &Name,
        stream: Option<&Name>,
    ) -> Result<Arc<Grant>, Problem> {
        let given = headers.get(header::AUTHORIZATION).ok_or_else(|| {
            Problem::new(StatusCode::UNAUTHORIZED, "give a token in the header `Authorization: Bearer TOKEN`")
        })?;
        let token = given.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        let grant = token.and_then(|token| self.tokens.find(token.trim()));
        let grant = grant.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "the token is not known"))?;
        if grant.allows(scope, tenant, stream) {
            return Ok(grant);
        }
        let place = stream.map_or_else(|| format!("tenant {tenant}"), |stream| format!("stream {tenant}/{stream}"));
        Err(Problem::new(StatusCode::FORBIDDEN, format!("the token does not allow {scope} for {place}")))
    }
}
