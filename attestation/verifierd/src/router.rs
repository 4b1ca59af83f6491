//! All paths of the service, its API and the operator's page, behind one admission.

use std::sync::Arc;

use axum::Router;
use axum::middleware;

use crate::admission;
use crate::api;
use crate::app::App;
use crate::page;
use crate::problem::{Because, Kind, Problem};

/// The service's router.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .merge(api::router())
        .merge(page::router())
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), admission::every_request))
        .with_state(app)
}

async fn not_found() -> Problem {
    Kind::NotFound.because("there is no such path")
}

async fn method_not_allowed() -> Problem {
    Kind::Method.because("this path does not take the method")
}
