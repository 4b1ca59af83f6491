//! Sends spans to the collector, in batches, from a separate thread: requests never wait for it.
//! What it does not take in time is lost, and counted.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use opentelemetry::trace::Span as _;
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor,
};
use prost::Message as _;

use crate::config;
use crate::http_client;
use crate::problem::{Because, Kind, Result};
use crate::secrets::private_text;

/// Spans that wait or are being sent, at most: about 2 MiB.
const QUEUE: usize = 2048;
/// Spans of one request to the collector.
const BATCH: usize = 512;
/// How long spans wait for others of their batch.
const PAUSE: Duration = Duration::from_secs(1);
/// The time that an answer of the collector may take, and after which a batch is not sent again.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of its answers.
const LARGEST: u64 = 64 * 1024;

/// The attribute that names the tenant of a request.
const TENANT: &str = "shef.tenant";
/// Spans of strangers' requests that may wait, as a part of the free places.
const STRANGERS: usize = 8;

/// The tenant of a request, in its context.
pub(super) struct Tenant(pub(super) String);

/// The tenant of a span; empty for strangers.
fn tenant(span: &SpanData) -> String {
    let named = span.attributes.iter().find(|attribute| attribute.key.as_str() == TENANT);
    named.map_or_else(String::new, |attribute| attribute.value.as_str().into_owned())
}

/// Spans that wait or are being sent, by tenant. A tenant may have as many as are free. Strangers can
/// send any number of requests, and have a part of that, which leaves room for tenants.
#[derive(Debug, Default)]
struct Waiting(HashMap<String, usize>);

impl Waiting {
    /// Counts one more, if there is room.
    fn add(&mut self, tenant: String) -> bool {
        let free = QUEUE.saturating_sub(self.0.values().sum());
        let most = if tenant.is_empty() { free / STRANGERS } else { free };
        let has = self.0.get(&tenant).copied().unwrap_or(0);
        if has < most {
            self.0.insert(tenant, has + 1);
        }
        has < most
    }

    fn remove(&mut self, tenant: &str) {
        if let Some(has) = self.0.get_mut(tenant) {
            *has -= 1;
            if *has == 0 {
                self.0.remove(tenant);
            }
        }
    }
}

/// What becomes of spans.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// Not sent yet.
    waiting: Mutex<Waiting>,
    lost: AtomicU64,
    /// Of the lost ones, those that the log tells of.
    told: AtomicU64,
    /// Why the last ones were lost.
    why: Mutex<String>,
}

impl Fate {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no panic under this lock")
    }

    fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    fn because(&self, why: &str) {
        let mut last = self.why.lock().expect("no panic under this lock");
        last.clear();
        last.push_str(why);
    }

    /// Counts spans that still wait as lost.
    pub(super) fn give_up(&self) {
        let waiting = std::mem::take(&mut *self.waiting());
        self.lose(waiting.0.into_values().sum::<usize>() as u64);
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// How many were lost since the last call, and why; `None` if none were.
    pub(super) fn news(&self) -> Option<(u64, String)> {
        let lost = self.lost();
        let new = lost - self.told.swap(lost, Ordering::Relaxed);
        (new > 0).then(|| (new, self.why.lock().expect("no panic under this lock").clone()))
    }
}

/// Headers that say how a request is sent, which the client that sends it decides.
const FRAMING: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The headers in a file: `NAME: VALUE` in each line.
fn headers(path: &Path) -> Result<HeaderMap> {
    let text = private_text(path)?;
    let mut all = HeaderMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let pair = line.split_once(':').and_then(|(name, value)| {
            let value = HeaderValue::from_str(value.trim()).ok()?;
            Some((HeaderName::try_from(name.trim()).ok()?, value))
        });
        // The line may hold a secret.
        let Some((name, mut value)) = pair else {
            let (path, line) = (path.display(), number + 1);
            let text =
                format!("{path}:{line}: expected a header, such as authorization: Bearer TOKEN");
            return Err(Kind::Material.because(text));
        };
        if FRAMING.contains(&name.as_str()) {
            let text = format!(
                "{}:{}: the header {name} says how a request is sent, which this file cannot: remove it",
                path.display(),
                number + 1
            );
            return Err(Kind::Material.because(text));
        }
        value.set_sensitive(true);
        all.append(name, value);
    }
    Ok(all)
}

/// The collector.
#[derive(Debug)]
struct Collector {
    agent: ureq::Agent,
    endpoint: String,
    headers: HeaderMap,
    fate: Arc<Fate>,
}

impl Collector {
    fn new(traces: &config::Traces, fate: Arc<Fate>) -> Result<Self> {
        let mut agent = http_client::agent(traces.ca.as_deref(), PATIENCE)
            .map_err(|why| Kind::Material.because(format!("traces: {why}")))?
            .http_status_as_error(false);
        agent = match traces.endpoint.starts_with("https:") {
            true => agent.https_only(true),
            // Without TLS, spans stay on this machine.
            false => agent.proxy(None),
        };
        let headers = traces.headers_file.as_deref().map(headers).transpose()?.unwrap_or_default();
        Ok(Self { agent: agent.build().into(), endpoint: traces.endpoint.clone(), headers, fate })
    }

    /// Sends a message of OTLP. Only its bytes: variables of the environment may change what the
    /// exporter makes of address and headers.
    fn post(&self, message: &[u8]) -> Result<Response<Bytes>, ureq::Error> {
        let mut request = self.agent.post(&self.endpoint);
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
            let protobuf = HeaderValue::from_static("application/x-protobuf");
            headers.insert(header::CONTENT_TYPE, protobuf);
        }
        let (parts, mut body) = request.send(message)?.into_parts();
        let body = body.with_config().limit(LARGEST).read_to_vec()?;
        Ok(Response::from_parts(parts, body.into()))
    }

    /// Sends no span.
    fn try_out(&self) -> Result<(), String> {
        match self.post(b"") {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("{} answers {}", self.endpoint, answer.status())),
            Err(error) => Err(format!("{}: {error}", self.endpoint)),
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.post(request.body()).inspect_err(|error| {
            self.fate.because(&error.to_string());
        })?;
        if !answer.status().is_success() {
            self.fate.because(&format!("the collector answers {}", answer.status()));
        } else if let Ok(ExportTraceServiceResponse { partial_success: Some(partial) }) =
            ExportTraceServiceResponse::decode(&answer.body()[..])
            && let rejected @ 1.. = partial.rejected_spans.unsigned_abs()
        {
            self.fate.lose(rejected);
            self.fate.because("the collector rejects some");
        }
        Ok(answer)
    }
}

/// Counts what is sent, and what is lost for want of a collector.
#[derive(Debug)]
struct Exporter {
    otlp: opentelemetry_otlp::SpanExporter,
    fate: Arc<Fate>,
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let tenants: Vec<_> = batch.iter().map(tenant).collect();
        let sent = self.otlp.export(batch).await;
        let mut waiting = self.fate.waiting();
        tenants.iter().for_each(|tenant| waiting.remove(tenant));
        drop(waiting);
        if sent.is_err() {
            self.fate.lose(tenants.len() as u64);
        }
        sent
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}

/// Counts what waits, and what is lost because too much does.
#[derive(Debug)]
struct Bounded {
    batches: BatchSpanProcessor,
    fate: Arc<Fate>,
}

impl SpanProcessor for Bounded {
    fn on_start(&self, span: &mut Span, context: &Context) {
        if let Some(Tenant(name)) = context.get() {
            span.set_attribute(KeyValue::new(TENANT, name.clone()));
        }
    }

    fn on_end(&self, span: SpanData) {
        let counted = self.fate.waiting().add(tenant(&span));
        if counted {
            self.batches.on_end(span);
        } else {
            self.fate.lose(1);
            self.fate.because("too many wait for the collector");
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Checks that spans can be sent, and whether the collector takes them.
///
/// # Errors
/// A file cannot be used, or a variable of the environment asks for a compression.
pub(super) fn check(traces: &config::Traces) -> Result<Result<(), String>> {
    exporter(traces, &Arc::default())?;
    Ok(Collector::new(traces, Arc::default())?.try_out())
}

fn exporter(traces: &config::Traces, fate: &Arc<Fate>) -> Result<Exporter> {
    let otlp = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(Collector::new(traces, Arc::clone(fate))?)
        .with_endpoint(&traces.endpoint)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(PATIENCE)
        .build()
        .map_err(|error| Kind::Config.because(format!("traces: {error}")))?;
    Ok(Exporter { otlp, fate: Arc::clone(fate) })
}

/// Begins to send spans to the collector of a configuration.
///
/// # Errors
/// As for [`check`].
pub(super) fn processor(
    traces: &config::Traces,
    fate: &Arc<Fate>,
) -> Result<impl SpanProcessor + use<>> {
    let exporter = exporter(traces, fate)?;
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE)
        .with_max_export_batch_size(BATCH)
        .with_scheduled_delay(PAUSE)
        .build();
    let batches = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
    Ok(Bounded { batches, fate: Arc::clone(fate) })
}
