//! Traces: one span a request and one for each of its longer steps, for a collector of
//! OpenTelemetry.
//!
//! Spans have nothing but what is put into them here and in [`crate::spans`]. They are made through
//! OpenTelemetry's own API rather than from the spans of the log: no filter of the log decides on
//! them, and no line of it gets into them.

mod collector;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, Method};
use axum::response::Response;
use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};

use self::collector::{Fate, Tenant};
use crate::config;
use crate::problem::{Answered, Result};
use crate::secrets::random;

/// How long the end of the service waits for the last spans to be sent.
const FLUSH: Duration = Duration::from_secs(3);

/// Makes the spans of a service, and sends them.
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    sample: f64,
    fate: Arc<Fate>,
}

/// Checks that spans can be sent. The inner result says whether the collector takes them, without which
/// a service runs all the same.
///
/// # Errors
/// A file cannot be used, or a variable of the environment asks for a compression.
pub fn check(traces: &config::Traces) -> Result<Result<(), String>> {
    collector::check(traces)
}

impl Traces {
    /// Begins to send spans to the collector of a configuration, whether or not it answers.
    ///
    /// # Errors
    /// As for [`check`].
    pub fn start(traces: &config::Traces) -> Result<Self> {
        let fate = Arc::<Fate>::default();
        let processor = collector::processor(traces, &fate)?;
        let resource = Resource::builder()
            .with_service_name("shef-verifierd")
            .with_attributes([
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new("service.instance.id", hex::encode(random::<16>())),
            ])
            .build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_sampler(Sampler::AlwaysOn)
            .with_span_processor(processor)
            .build();
        let tracer = provider.tracer("shef-verifierd");
        Ok(Self { provider, tracer, sample: traces.sample, fate })
    }

    /// Whether the next request is traced. Callers have no say in this: they choose the ids of their
    /// traces and the flags, so a draw by either would let them have all their requests traced.
    fn draws(&self) -> bool {
        f64::from(u32::from_le_bytes(random())) < self.sample * 2_f64.powi(32)
    }

    /// Spans that were lost since the start.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.fate.lost()
    }

    /// Logs how many spans were lost since the last time, if any were.
    pub fn tell(&self) {
        if let Some((lost, why)) = self.fate.news() {
            tracing::warn!(lost, total = self.lost(), why, "spans were lost");
        }
    }

    /// Sends the last spans, as far as the collector takes them within a few seconds.
    pub fn stop(&self) {
        let _ = self.provider.shutdown_with_timeout(FLUSH);
        self.fate.give_up();
        self.tell();
    }
}

/// The span of the caller, if exactly one header names it as version 00 of W3C's Trace Context does.
/// Its flags are not taken over, nor what other headers say.
fn caller(headers: &HeaderMap) -> Option<SpanContext> {
    let mut all = headers.get_all("traceparent").iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let parts: Vec<&str> = only.to_str().ok()?.split('-').collect();
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let ["00", trace, span, flags] = parts[..] else { return None };
    if !(is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2)) {
        return None;
    }
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let state = TraceState::default();
    let caller = SpanContext::new(trace, span, TraceFlags::default(), true, state);
    caller.is_valid().then_some(caller)
}

/// The span of a request that is not admitted yet: without [`Draft::begin`], there will be none.
pub struct Draft<'a> {
    tracer: &'a SdkTracer,
    span: SpanBuilder,
    caller: Option<SpanContext>,
}

/// Drafts the span of a request, if it is traced.
pub fn draft<'a>(
    traces: Option<&'a Traces>,
    method: &Method,
    route: Option<&'static str>,
    headers: &HeaderMap,
    id: &str,
) -> Option<Draft<'a>> {
    let traces = traces.filter(|traces| traces.draws())?;
    // An unknown method is any text.
    let known = matches!(
        *method,
        Method::GET
            | Method::HEAD
            | Method::POST
            | Method::PUT
            | Method::DELETE
            | Method::PATCH
            | Method::OPTIONS
            | Method::TRACE
            | Method::CONNECT
    );
    let method = if known { method.to_string() } else { "_OTHER".into() };
    let mut attributes = vec![
        KeyValue::new("http.request.method", method.clone()),
        KeyValue::new("url.scheme", "https"),
        KeyValue::new("shef.request.id", id.to_owned()),
    ];
    let mut name = if known { method } else { "HTTP".into() };
    if let Some(route) = route {
        attributes.push(KeyValue::new("http.route", route));
        name = format!("{name} {route}");
    }
    let span = SpanBuilder::from_name(name)
        .with_kind(SpanKind::Server)
        .with_start_time(SystemTime::now())
        .with_attributes(attributes);
    Some(Draft { tracer: &traces.tracer, span, caller: caller(headers) })
}

impl Draft<'_> {
    /// Begins the span, of a tenant's request if it is known. It has the request's steps
    /// ([`crate::spans`]) while the context is current.
    pub fn begin(self, tenant: Option<&str>) -> Context {
        let mut here = Context::new().with_value(self.tracer.clone());
        if let Some(tenant) = tenant {
            here = here.with_value(Tenant(tenant.to_owned()));
        }
        let parent = match self.caller {
            Some(caller) => here.with_remote_span_context(caller),
            None => here,
        };
        parent.with_span(self.tracer.build_with_context(self.span, &parent))
    }
}

/// Adds the answer to the span of a request.
pub fn answered(context: &Context, response: &Response) {
    let (status, code) = (response.status(), response.extensions().get::<Answered>());
    let span = context.span();
    span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
    if let Some(code) = code {
        span.set_attribute(KeyValue::new("error.type", code.0));
    }
    if status.is_server_error() {
        span.set_status(Status::error(""));
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn found(values: &[&str]) -> Option<SpanContext> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("traceparent", HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers.insert("tracestate", HeaderValue::from_static("vendor=1"));
        headers.insert("baggage", HeaderValue::from_static("user=1"));
        caller(&headers)
    }

    #[test]
    fn only_the_ids_of_a_caller_count() {
        for flags in ["00", "01", "ff"] {
            let found = found(&[&format!("{}{flags}", &GOOD[..53])]).unwrap();
            assert_eq!(found.trace_id().to_string(), GOOD[3..35]);
            assert_eq!(found.span_id().to_string(), GOOD[36..52]);
            assert!(found.is_remote() && !found.is_sampled());
            assert_eq!(found.trace_state(), &TraceState::default());
        }
    }

    #[test]
    fn forged_parents_are_no_parents() {
        let long = format!("{GOOD}-{}", "0".repeat(4096));
        let upper = GOOD.to_uppercase();
        for bad in [
            "",
            "00",
            "00-",
            &GOOD[..54],
            &format!("{GOOD}0"),
            &format!("{GOOD}-"),
            &format!(" {GOOD}"),
            &long,
            &upper,
            &GOOD.replacen("00-", "01-", 1),
            &GOOD.replacen("00-", "ff-", 1),
            &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &GOOD.replace("4bf9", "+bf9"),
            &GOOD.replace("4bf9", "4bg9"),
            &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", "1"),
            &GOOD.replace("4bf9", "é9"),
        ] {
            assert_eq!(found(&[bad]), None, "{bad}");
        }
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[GOOD, GOOD]), None);
        assert!(found(&[GOOD]).is_some());
    }
}
