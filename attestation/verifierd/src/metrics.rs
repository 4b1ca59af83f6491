//! Metrics for Prometheus. Label values are `&'static str`, so they always come from the program, not
//! from a client.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::collector::Collector;
pub(crate) use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, counter, family};
use prometheus_client::registry::Registry;
use shef_proto::evidence::Layer;
use shef_verify::CheckId;

/// A family of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Responses, by route and status.
    Requests,
    /// Appraisals, by layer, verdict and first failed check.
    Appraisals,
    /// Key releases, by layer and result.
    Releases,
    /// Connections that ended in the TLS handshake or were evicted, by reason.
    Handshakes,
    /// Reloads of the configuration on SIGHUP, by result.
    Reloads,
    /// Evaluations of policies in Rego that failed, by reason.
    Policies,
}

impl Counter {
    /// Whether it is about the process rather than a tenant.
    fn of_the_service(self) -> bool {
        matches!(self, Self::Handshakes | Self::Reloads)
    }

    /// Label values that are shown from the start, with 0: an increase of a series that does not exist
    /// yet is zero, so an alert on it would miss the first event. For [`Self::Requests`], these are
    /// the errors of the service on these routes; for all others, every value that occurs.
    fn known(self, routes: &[&'static str]) -> Vec<Vec<&'static str>> {
        let each = |values: &[&'static str]| values.iter().map(|value| vec![*value]).collect();
        let layers = || [Layer::Kernel, Layer::Shield].map(Layer::name).into_iter();
        match self {
            Self::Requests => routes
                .iter()
                .flat_map(|route| ["500", "503"].map(|status| vec![*route, status]))
                .collect(),
            Self::Appraisals => layers()
                .flat_map(|layer| {
                    let denied = CheckId::ALL.iter().map(|check| ("denied", check.code()));
                    let all = [("accepted", "none")].into_iter().chain(denied);
                    all.map(move |(verdict, code)| vec![layer, verdict, code])
                })
                .collect(),
            Self::Releases => layers()
                .flat_map(|layer| {
                    ["released", "repeated", "refused", "failed"].map(|result| vec![layer, result])
                })
                .collect(),
            Self::Handshakes => each(&["displaced", "evicted", "refused", "slow"]),
            Self::Reloads => each(&["done", "refused"]),
            Self::Policies => each(&["failed", "limit", "refused", "unavailable"]),
        }
    }

    /// The labels with these values.
    fn labels(self, values: &[&'static str]) -> Labels {
        self.name().2.iter().copied().zip(values.iter().copied()).collect()
    }

    const ALL: [Self; 6] = [
        Self::Requests,
        Self::Appraisals,
        Self::Releases,
        Self::Handshakes,
        Self::Reloads,
        Self::Policies,
    ];

    /// Name, help line without its full stop, and names of the labels.
    fn name(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            Self::Requests => {
                ("shef_requests_total", "Answers by route and status", &["route", "status"])
            }
            Self::Appraisals => (
                "shef_appraisals_total",
                "Appraisals by layer, verdict and first failed check",
                &["layer", "verdict", "code"],
            ),
            Self::Releases => {
                ("shef_releases_total", "Key releases by layer and result", &["layer", "result"])
            }
            Self::Handshakes => (
                "shef_tls_failures_total",
                "Connections that ended in the TLS handshake, or made room for others",
                &["reason"],
            ),
            Self::Reloads => ("shef_reloads_total", "Configuration reloads by result", &["result"]),
            Self::Policies => (
                "shef_policy_failures_total",
                "Evaluations of policies in Rego without an answer",
                &["reason"],
            ),
        }
    }
}

/// Upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 9] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5];

type Labels = Vec<(&'static str, &'static str)>;

/// The counters of each family, in the order of [`Counter::ALL`].
type Counters = [family::Family<Labels, counter::Counter>; Counter::ALL.len()];

/// All counters of one service.
pub struct Metrics {
    all: Counters,
    /// Of the same events, those of each tenant.
    tenants: Mutex<BTreeMap<String, Counters>>,
    seconds: Histogram,
    /// Whether the last reload of the configuration was refused.
    refused: AtomicBool,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            all: Counters::default(),
            tenants: Mutex::default(),
            seconds: Histogram::new(BUCKETS),
            refused: AtomicBool::default(),
        }
    }
}

/// A family that is computed when metrics are read.
#[derive(Debug)]
pub struct Family {
    /// Name.
    pub name: &'static str,
    /// Help line.
    pub help: &'static str,
    /// Gauge or counter.
    pub kind: MetricType,
    /// Values, each with its label and the label's value; both are empty for a single value.
    pub values: Vec<(&'static str, &'static str, f64)>,
}

impl Family {
    /// A gauge; without a sample if there is no value.
    #[must_use]
    pub fn gauge(name: &'static str, help: &'static str, value: impl Into<Option<f64>>) -> Self {
        let values = value.into().map(|value| ("", "", value)).into_iter().collect();
        Self { name, help, kind: MetricType::Gauge, values }
    }

    /// A counter, whose name ends in `_total`.
    #[must_use]
    pub fn counter(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { kind: MetricType::Counter, ..Self::gauge(name, help, value) }
    }
}

/// The name to which the encoder adds the suffix of a counter.
fn stem(name: &str) -> &str {
    name.trim_end_matches("_total")
}

impl Collector for Family {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut family = encoder.encode_descriptor(stem(self.name), self.help, None, self.kind)?;
        for (label, of, value) in &self.values {
            let labels = [(*label, *of)];
            let labels = if label.is_empty() { &[][..] } else { &labels };
            let mut sample = family.encode_family(&labels)?;
            // Whole numbers without a decimal point, as those that are counted here.
            let whole = value.fract() == 0.0;
            match self.kind {
                MetricType::Counter if whole => {
                    sample.encode_counter::<NoLabelSet, _, f64>(&(*value as u64), None)?;
                }
                MetricType::Counter => sample.encode_counter::<NoLabelSet, _, f64>(value, None)?,
                _ if whole => sample.encode_gauge(&(*value as i64))?,
                _ => sample.encode_gauge(value)?,
            }
        }
        Ok(())
    }
}

impl Metrics {
    /// The counters of a tenant.
    fn of(&self, tenant: &str) -> Counters {
        let mut tenants = self.tenants.lock().expect("no panic under this lock");
        match tenants.get(tenant) {
            Some(counters) => counters.clone(),
            None => tenants.entry(tenant.to_owned()).or_default().clone(),
        }
    }

    /// Counts an event of a tenant, or of an unknown caller.
    ///
    /// # Panics
    /// Never in a release build: nothing panics under the lock.
    pub fn count(&self, counter: Counter, tenant: Option<&str>, labels: &[&'static str]) {
        debug_assert!(
            counter == Counter::Requests || counter.known(&[]).iter().any(|known| known == labels),
            "{counter:?} does not start with {labels:?}"
        );
        let labels = counter.labels(labels);
        if let Some(tenant) = tenant {
            self.of(tenant)[counter as usize].get_or_create(&labels).inc();
        }
        self.all[counter as usize].get_or_create(&labels).inc();
    }

    /// Counts a reload of the configuration, and remembers whether it was refused.
    pub fn reloaded(&self, done: bool) {
        self.refused.store(!done, Ordering::Relaxed);
        self.count(Counter::Reloads, None, &[if done { "done" } else { "refused" }]);
    }

    /// Whether the configuration is the one of the last reload, or of the start.
    #[must_use]
    pub fn is_current(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// Records the duration of a request.
    pub fn took(&self, seconds: f64) {
        self.seconds.observe(seconds);
    }

    /// Renders the text: for one tenant, or for the whole service. `routes` are all label values of
    /// routes.
    ///
    /// # Panics
    /// Never: nothing panics under the lock, and a text takes any text.
    #[must_use]
    pub fn render(
        &self,
        tenant: Option<&str>,
        routes: &[&'static str],
        families: Vec<Family>,
    ) -> String {
        let counters = tenant.map_or_else(|| self.all.clone(), |tenant| self.of(tenant));
        let mut registry = Registry::default();
        for (counter, counts) in Counter::ALL.into_iter().zip(counters) {
            if tenant.is_some() && counter.of_the_service() {
                continue;
            }
            for labels in counter.known(routes) {
                drop(counts.get_or_create(&counter.labels(&labels)));
            }
            let (name, help, _) = counter.name();
            registry.register(stem(name), help, counts);
        }
        if tenant.is_none() {
            let help = "Time from the whole request to its answer";
            registry.register("shef_request_seconds", help, self.seconds.clone());
        }
        for family in families {
            registry.register_collector(Box::new(family));
        }
        let mut out = String::new();
        prometheus_text::encode(&mut out, &registry).expect("a text takes any text");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form() {
        let metrics = Metrics::default();
        metrics.count(Counter::Releases, Some("a"), &["kernel", "released"]);
        metrics.count(Counter::Releases, Some("b"), &["kernel", "released"]);
        metrics.reloaded(false);
        assert!(!metrics.is_current());
        metrics.reloaded(true);
        assert!(metrics.is_current());
        metrics.took(0.002);
        metrics.took(9.0);
        let families = || {
            vec![
                Family::gauge("shef_devices", "Devices.", 2.0),
                Family { values: vec![("of", "crl", 3.0)], ..Family::gauge("left", "Left.", None) },
                Family::gauge("unknown", "No value.", None),
                Family::counter("done_total", "Done.", 7.0),
                Family::counter("work_total", "Work.", 0.25),
            ]
        };
        let text = metrics.render(Some("a"), &[], families());
        assert!(
            text.contains("shef_releases_total{layer=\"kernel\",result=\"released\"} 1\n"),
            "{text}"
        );
        assert!(
            !text.contains("shef_reloads_total") && !text.contains("shef_request_seconds"),
            "{text}"
        );
        let text = metrics.render(None, &[], families());
        assert!(
            text.contains("shef_releases_total{layer=\"kernel\",result=\"released\"} 2\n"),
            "{text}"
        );
        assert!(
            text.contains("shef_reloads_total{result=\"done\"} 1\n")
                && text.contains("\nleft{of=\"crl\"} 3\n"),
            "{text}"
        );
        assert!(
            text.contains("le=\"0.0025\"} 1\n")
                && text.contains("le=\"+Inf\"} 2\n")
                && text.contains("\nshef_devices 2\n"),
            "{text}"
        );
        let end = "# HELP unknown No value.\n# TYPE unknown gauge\n\
                   # HELP done_total Done.\n# TYPE done_total counter\ndone_total 7\n\
                   # HELP work_total Work.\n# TYPE work_total counter\nwork_total 0.25\n";
        assert!(text.ends_with(end), "{text}");
    }

    /// Alerts on an increase see the first event after a start.
    #[test]
    fn counters_start_with_zero() {
        let routes = ["/v1/release", "other"];
        let text = Metrics::default().render(None, &routes, Vec::new());
        for counter in Counter::ALL {
            let (name, _, _) = counter.name();
            let samples: Vec<&str> =
                text.lines().filter(|line| line.starts_with(&format!("{name}{{"))).collect();
            assert_eq!(samples.len(), counter.known(&routes).len(), "{name}: {text}");
            assert!(samples.iter().all(|line| line.ends_with(" 0")), "{samples:?}");
        }
        for sample in [
            "shef_appraisals_total{layer=\"shield\",verdict=\"denied\",code=\"SHEF-ATT-048\"} 0\n",
            "shef_requests_total{route=\"/v1/release\",status=\"503\"} 0\n",
        ] {
            assert!(text.contains(sample), "{text}");
        }
    }

    #[test]
    #[should_panic(expected = "does not start with")]
    fn no_counter_has_a_label_value_that_it_does_not_start_with() {
        Metrics::default().count(Counter::Handshakes, None, &["new"]);
    }
}
