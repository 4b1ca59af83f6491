//! The longer steps of requests, as spans of their [traces](crate::traces).

use opentelemetry::trace::{SpanBuilder, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, ContextGuard};
use opentelemetry_sdk::trace::SdkTracer;

/// A step of the request in progress, which lasts until this is dropped.
#[must_use]
pub struct Step(Option<Context>);

/// Begins a step, if the request in progress is traced.
pub fn step(name: &'static str) -> Step {
    Step(Context::map_current(|here| {
        let tracer = here.get::<SdkTracer>()?;
        Some(here.with_span(tracer.build_with_context(SpanBuilder::from_name(name), here)))
    }))
}

impl Step {
    /// Has what this thread does next, until the guard is dropped, be part of the step.
    pub fn enter(&self) -> Option<ContextGuard> {
        self.0.clone().map(Context::attach)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn without_a_request_no_step_is_traced() {
        let step = super::step("sign receipt");
        assert!(step.0.is_none() && step.enter().is_none());
    }
}
