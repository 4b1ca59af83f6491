//! Appraisal policies in Rego, run by `regorus` within limits.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, PolicyLengthConfig, Value};

use shef_proto::evidence::Claims;

use crate::policy::{PolicyError, policy_id};

/// The rule that must come to `true`.
pub const ALLOW: &str = "data.shef.allow";

/// Functions whose value is not a function of the input. Those that the engine was built without are named for a clear error.
const IMPURE: [&str; 6] = ["time.now_ns", "rand.intn", "uuid.rfc4122", "http.send", "opa.runtime", "net.lookup_ip_addr"];

/// Most that the parser may have to read, as [`reading`] counts it: some tenths of a second.
const READING: u64 = 1 << 20;

/// Characters that the parser reads, each as often as it does: what is in brackets is tried as a comprehension first and, where it is none, read again, brackets in
/// it and all. Fifty nested ones would take it for ever.
fn reading(text: &str) -> u64 {
    let (mut sum, mut depth, mut bytes) = (0u64, 0u32, text.bytes());
    // What ends the string or comment that is read.
    let mut until = None;
    while let Some(byte) = bytes.next() {
        sum = sum.saturating_add(1u64.checked_shl(depth).unwrap_or(u64::MAX));
        match (until, byte) {
            (Some(b'"'), b'\\') => drop(bytes.next()),
            (Some(end), _) if byte == end => until = None,
            (None, b'"' | b'`') => until = Some(byte),
            (None, b'#') => until = Some(b'\n'),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    sum
}

/// Bounds of a policy in Rego.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegoLimits {
    /// Most bytes of its text.
    pub bytes: usize,
    /// Most time of one evaluation, by the wall clock: generous, so that a busy machine denies nobody. What takes longer denies.
    pub time: Duration,
}

impl Default for RegoLimits {
    fn default() -> Self {
        Self { bytes: 64 * 1024, time: Duration::from_secs(1) }
    }
}

/// A policy in Rego: `package shef` with a rule `allow`. Parsed and analysed once; each appraisal runs on a copy.
#[derive(Clone)]
pub struct Rego {
    engine: Engine,
    limits: RegoLimits,
    id: String,
}

impl fmt::Debug for Rego {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rego").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a policy in Rego said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegoAnswer {
    /// `allow` is `true`.
    Allow,
    /// `allow` is `false` or has no value.
    Deny,
    /// It could not be decided: an error, a limit, or a value that is no truth value.
    Malfunction(String),
}

impl Rego {
    /// Parses a policy with the default limits.
    ///
    /// # Errors
    /// As [`Rego::with_limits`].
    pub fn new(text: &str) -> Result<Self, PolicyError> {
        Self::with_limits(text, RegoLimits::default())
    }

    /// Parses a policy.
    ///
    /// # Errors
    /// Too long, nested too deep, not Rego (with line and column), another package than `shef`, or no rule `allow`.
    pub fn with_limits(text: &str, limits: RegoLimits) -> Result<Self, PolicyError> {
        let bad = |text: String| PolicyError::Rego { text };
        if text.len() > limits.bytes {
            return Err(bad(format!("{} bytes, the limit is {}", text.len(), limits.bytes)));
        }
        if let Some(name) = IMPURE.iter().find(|name| text.contains(**name)) {
            return Err(bad(format!("{name}: a policy knows no clock, chance or network; the time is input.now")));
        }
        if reading(text) > READING {
            return Err(bad(
                "its brackets are nested so deep that it would take too long to read: make what is inside a rule of its own".into()
            ));
        }
        let mut engine = Engine::new();
        if let Some(max_file_bytes) = NonZeroUsize::new(limits.bytes) {
            engine.set_policy_length_config(PolicyLengthConfig { max_file_bytes, ..PolicyLengthConfig::default() });
        }
        if let Some(check_interval) = NonZeroU32::new(64) {
            engine.set_execution_timer_config(ExecutionTimerConfig { limit: limits.time, check_interval });
        }
        engine.set_strict_builtin_errors(true);
        let package = engine.add_policy("policy.rego".into(), text.into()).map_err(|error| bad(error.to_string()))?;
        if package != "data.shef" {
            return Err(bad(format!("the package is {package:?}, expected `package shef`")));
        }
        // Analyses the policy now: what cannot be run is refused here, and copies need not be prepared again.
        engine.set_input(Value::new_object());
        if let Err(error) = engine.eval_rule(ALLOW.into()) {
            let error = error.to_string();
            if error.contains("not a valid rule path") {
                return Err(bad("there is no rule `allow`".into()));
            }
        }
        Ok(Self { engine, limits, id: policy_id(text) })
    }

    /// Id: SHA-256 of the text.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Evaluates the policy over `input`.
    #[must_use]
    pub fn evaluate(&self, input: Value) -> RegoAnswer {
        let mut engine = self.engine.clone();
        engine.set_input(input);
        match engine.eval_rule(ALLOW.into()) {
            Ok(Value::Bool(true)) => RegoAnswer::Allow,
            Ok(Value::Bool(false) | Value::Undefined) => RegoAnswer::Deny,
            Ok(other) => RegoAnswer::Malfunction(format!("allow is not true or false but {}", kind(&other))),
            // The engine says how long it took: that is no function of the input.
            Err(error) if error.to_string().contains("exceeded time limit") => {
                RegoAnswer::Malfunction(format!("it took longer than {} ms", self.limits.time.as_millis()))
            }
            Err(error) => RegoAnswer::Malfunction(error.to_string().lines().last().unwrap_or_default().to_owned()),
        }
    }
}

/// What a policy sees: the claims of the evidence, in the names that reports use, and the time.
pub(crate) fn input(claims: &Claims, now: i64) -> Value {
    let c = &claims.common;
    let text = |text: &str| Value::from(text);
    let hex = |bytes: &[u8]| Value::from(hex::encode(bytes));
    let mut object = Value::new_object();
    let Ok(map) = object.as_object_mut() else { return object };
    let mut set = |name: &str, value: Value| drop(map.insert(name.into(), value));
    set("layer", text(claims.layer().name()));
    set("now", Value::from(now));
    set("audience", text(&c.audience));
    set("ueid", hex(&c.ueid));
    set("target", text(&c.target));
    set("debug", text(c.debug.name()));
    set("root_of_trust", text(c.root_of_trust.name()));
    set("kernel_digest", hex(&c.kernel_digest));
    set("kernel_svn", Value::from(c.kernel_svn));
    set("shell_digest", hex(&c.shell_digest));
    set("seeded", Value::from(c.seeded));
    if let Some(s) = &claims.shield {
        set("image_digest", hex(&s.image_digest));
        set("config_digest", hex(&s.config_digest));
        set("design_digest", hex(&s.design_digest));
        set("image_svn", Value::from(s.image_svn));
        set("accelerator", text(&s.accelerator));
        set("vendor", hex(&s.vendor));
        set("on_fault", text(s.on_fault.name()));
        set("bypass", Value::from(s.bypass.iter().map(|name| text(name)).collect::<Vec<_>>()));
        set("state", text(s.state.name()));
    }
    object
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Set(_) => "a set",
        Value::Object(_) => "an object",
        Value::Undefined => "undefined",
    }
}
