//! Prometheus text. Label values are `&'static str`, so they always come from the program, not from
//! a client.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

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

    const ALL: [Self; 6] = [
        Self::Requests,
        Self::Appraisals,
        Self::Releases,
        Self::Handshakes,
        Self::Reloads,
        Self::Policies,
    ];

    fn name(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            Self::Requests => {
                ("shef_requests_total", "Answers by route and status.", &["route", "status"])
            }
            Self::Appraisals => (
                "shef_appraisals_total",
                "Appraisals by layer, verdict and first failed check.",
                &["layer", "verdict", "code"],
            ),
            Self::Releases => {
                ("shef_releases_total", "Key releases by layer and result.", &["layer", "result"])
            }
            Self::Handshakes => (
                "shef_tls_failures_total",
                "Connections that ended in the TLS handshake, or made room for others.",
                &["reason"],
            ),
            Self::Reloads => {
                ("shef_reloads_total", "Configuration reloads by result.", &["result"])
            }
            Self::Policies => (
                "shef_policy_failures_total",
                "Evaluations of policies in Rego without an answer.",
                &["reason"],
            ),
        }
    }
}

const BUCKETS: [(f64, &str); 9] = [
    (0.0005, "0.0005"),
    (0.001, "0.001"),
    (0.0025, "0.0025"),
    (0.005, "0.005"),
    (0.01, "0.01"),
    (0.025, "0.025"),
    (0.1, "0.1"),
    (0.5, "0.5"),
    (2.5, "2.5"),
];

#[derive(Default)]
struct Inner {
    /// By tenant; the empty name holds those without a tenant.
    counters: BTreeMap<String, BTreeMap<(Counter, Vec<&'static str>), u64>>,
    buckets: [u64; BUCKETS.len() + 1],
    seconds: f64,
}

/// All counters of one service.
#[derive(Default)]
pub struct Metrics {
    inner: Mutex<Inner>,
    /// Whether the last reload of the configuration was refused.
    refused: AtomicBool,
}

/// A family that is computed when metrics are read.
pub struct Family {
    /// Name.
    pub name: &'static str,
    /// Help line.
    pub help: &'static str,
    /// `gauge` or `counter`.
    pub kind: &'static str,
    /// Values, each with its label and the label's value; both are empty for a single value.
    pub values: Vec<(&'static str, &'static str, f64)>,
}

impl Family {
    /// A gauge; without a sample if there is no value.
    #[must_use]
    pub fn gauge(name: &'static str, help: &'static str, value: impl Into<Option<f64>>) -> Self {
        let values = value.into().map(|value| ("", "", value)).into_iter().collect();
        Self { name, help, kind: "gauge", values }
    }
}

impl Inner {
    fn histogram(&self, out: &mut String) {
        let name = "shef_request_seconds";
        let _ = writeln!(
            out,
            "# HELP {name} Time from the whole request to its answer.\n# TYPE {name} histogram"
        );
        let mut sum = 0;
        for ((_, limit), count) in BUCKETS.iter().zip(self.buckets) {
            sum += count;
            let _ = writeln!(out, "{name}_bucket{{le=\"{limit}\"}} {sum}");
        }
        sum += self.buckets[BUCKETS.len()];
        let _ = writeln!(
            out,
            "{name}_bucket{{le=\"+Inf\"}} {sum}\n{name}_sum {}\n{name}_count {sum}",
            self.seconds
        );
    }
}

impl Metrics {
    /// Counts an event of a tenant, or of an unknown caller.
    ///
    /// # Panics
    /// Never in a release build: nothing panics under the lock.
    pub fn count(&self, counter: Counter, tenant: Option<&str>, labels: &[&'static str]) {
        debug_assert!(
            counter == Counter::Requests || counter.known(&[]).iter().any(|known| known == labels),
            "{counter:?} does not start with {labels:?}"
        );
        let tenant = tenant.unwrap_or("");
        let mut inner = self.inner.lock().expect("no panic under this lock");
        let counters = match inner.counters.get_mut(tenant) {
            Some(counters) => counters,
            None => inner.counters.entry(tenant.to_owned()).or_default(),
        };
        *counters.entry((counter, labels.to_vec())).or_default() += 1;
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
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub fn took(&self, seconds: f64) {
        let mut inner = self.inner.lock().expect("no panic under this lock");
        let at = BUCKETS.iter().position(|(limit, _)| seconds <= *limit).unwrap_or(BUCKETS.len());
        inner.buckets[at] += 1;
        inner.seconds += seconds;
    }

    /// Renders the text: for one tenant, or for the whole service. `routes` are all label values of
    /// routes.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    #[must_use]
    pub fn render(
        &self,
        tenant: Option<&str>,
        routes: &[&'static str],
        families: &[Family],
    ) -> String {
        let known: Vec<(Counter, Vec<&'static str>)> = Counter::ALL
            .into_iter()
            .flat_map(|counter| {
                counter.known(routes).into_iter().map(move |labels| (counter, labels))
            })
            .collect();
        let inner = self.inner.lock().expect("no panic under this lock");
        let mut out = String::new();
        let mut counters: BTreeMap<&(Counter, Vec<&'static str>), u64> =
            known.iter().map(|counter| (counter, 0)).collect();
        for (_, own) in
            inner.counters.iter().filter(|(name, _)| tenant.is_none_or(|tenant| tenant == *name))
        {
            for (counter, count) in own {
                *counters.entry(counter).or_default() += count;
            }
        }
        for counter in Counter::ALL {
            if tenant.is_some() && counter.of_the_service() {
                continue;
            }
            let (name, help, labels) = counter.name();
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
            for ((_, values), count) in counters.iter().filter(|((c, _), _)| *c == counter) {
                let pairs: Vec<String> = labels
                    .iter()
                    .zip(values)
                    .map(|(label, value)| format!("{label}=\"{value}\""))
                    .collect();
                let _ = writeln!(out, "{name}{{{}}} {count}", pairs.join(","));
            }
        }
        if tenant.is_none() {
            inner.histogram(&mut out);
        }
        for Family { name, help, kind, values } in families {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (label, of, value) in values {
                let labels =
                    if label.is_empty() { String::new() } else { format!("{{{label}=\"{of}\"}}") };
                let _ = writeln!(out, "{name}{labels} {value}");
            }
        }
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
        let families = [
            Family::gauge("shef_devices", "Devices.", 2.0),
            Family { values: vec![("of", "crl", 3.0)], ..Family::gauge("left", "Left.", None) },
        ];
        let text = metrics.render(Some("a"), &[], &families);
        assert!(
            text.contains("shef_releases_total{layer=\"kernel\",result=\"released\"} 1\n"),
            "{text}"
        );
        assert!(
            !text.contains("shef_reloads_total") && !text.contains("shef_request_seconds"),
            "{text}"
        );
        let text = metrics.render(None, &[], &families);
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
    }

    /// Alerts on an increase see the first event after a start.
    #[test]
    fn counters_start_with_zero() {
        let routes = ["/v1/release", "other"];
        let text = Metrics::default().render(None, &routes, &[]);
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
