//! The HTTP API. Handlers translate only: they parse, call one function of the core, and map the
//! result.

mod answer;
mod ask;
mod body;
mod export;
mod ingest;
mod metrics;
mod page;
mod params;
mod problem;
mod question;
mod rate;
mod streams;
mod time;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use ucl_link::Name;

use crate::config::Config;
use crate::cores::Cores;
use crate::tokens::{Grant, Scope, Tokens};
use body::Room;
use export::Exports;
use metrics::Answered;
use problem::Problem;
use rate::Rates;

/// Data that handlers share.
pub struct App {
    pub cores: Cores,
    pub tokens: Tokens,
    pub config: Config,
    /// Memory for bodies.
    bodies: Room,
    exports: Exports,
    rates: Rates,
    answered: Answered,
}

impl App {
    pub fn new(cores: Cores, tokens: Tokens, config: Config) -> Self {
        let bodies = Room::new(config.body_bytes);
        let rates = Rates::new(config.max_requests);
        let exports = Exports::default();
        Self { cores, tokens, config, bodies, exports, rates, answered: Answered::default() }
    }
}

type Shared = State<Arc<App>>;

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(page::page))
        .route("/page.js", get(page::script))
        .route("/page.css", get(page::style))
        .route("/v1/openapi.json", get(page::openapi))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/v1/{tenant}/streams", get(streams::streams).delete(streams::delete))
        .route("/v1/{tenant}/estimate", get(ask::estimate).post(ask::estimate_many))
        .route("/v1/{tenant}/top", get(ask::top))
        .route("/v1/{tenant}/changes", get(ask::changes))
        .route("/v1/{tenant}/series", get(ask::series))
        .route("/v1/{tenant}/prefix", get(ask::prefix))
        .route("/v1/{tenant}/export", get(export::export))
        .route("/v1/{tenant}/{stream}/{incarnation}", post(ingest::ingest))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is nothing at this address"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this address does not take this method")
        })
        .layer(from_fn_with_state(Arc::clone(&app), in_time))
        .with_state(app)
}

/// Nobody holds a connection for ever.
async fn in_time(State(app): Shared, request: Request, next: Next) -> Response {
    let patience = body::patience(request.headers());
    let response = match tokio::time::timeout(patience, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(StatusCode::REQUEST_TIMEOUT, "the request took too long").into_response(),
    };
    let status = response.status();
    app.answered.count(status);
    let is_problem = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == problem::CONTENT_TYPE);
    if is_problem || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    // What could not even be read never came to a handler.
    Problem::new(status, "the request could not be read").into_response()
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(app): Shared) -> Result<&'static str, Problem> {
    if app.cores.is_ready() {
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
    /// Returns the grant of the request's token, unless its tenant asks too often.
    ///
    /// Before anything else of a request is looked at.
    fn grant(&self, headers: &HeaderMap) -> Result<Arc<Grant>, Problem> {
        let given = headers.get(header::AUTHORIZATION).ok_or_else(|| {
            Problem::new(StatusCode::UNAUTHORIZED, "give a token in the header `Authorization: Bearer TOKEN`")
        })?;
        let token = given.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        let grant = token.and_then(|token| self.tokens.find(token.trim()));
        let grant = grant.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "the token is not known"))?;
        if self.rates.take(&grant.tenant, Instant::now()) {
            return Ok(grant);
        }
        let most = self.config.max_requests;
        Err(Problem::busy(format!("tenant {} may send {most} requests a second", grant.tenant)))
    }
}

/// Refuses what a token does not allow.
fn allow(grant: &Grant, scope: Scope, tenant: &Name, stream: Option<&Name>) -> Result<(), Problem> {
    if grant.allows(scope, tenant, stream) {
        return Ok(());
    }
    let place = stream.map_or_else(|| format!("tenant {tenant}"), |stream| format!("stream {tenant}/{stream}"));
    Err(Problem::new(StatusCode::FORBIDDEN, format!("the token does not allow {scope} for {place}")))
}
