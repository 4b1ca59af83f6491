//! A parsed Rego policy, evaluated by `regorus`.

use std::fmt;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use regorus::unstable::BUILTINS;
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, PolicyLengthConfig, Value};

use super::{MAX_BYTES, MAX_TIME, RegoError};
use crate::files::PolicyError;

/// The rule that must be `true`.
const ALLOW: &str = "data.shef.allow";

/// Functions that policies may call: those useful on claims, with output bounded by their input.
/// All others are rejected: those that make large outputs from small inputs (`numbers.range`,
/// `sprintf`, `replace`), and those that depend on more than their input.
const FUNCTIONS: &[&str] = &[
    "__builtin_sets.intersection",
    "__builtin_sets.union",
    "abs",
    "array.concat",
    "array.reverse",
    "array.slice",
    "bits.and",
    "bits.negate",
    "bits.or",
    "bits.rsh",
    "bits.xor",
    "ceil",
    "contains",
    "count",
    "endswith",
    "floor",
    "format_int",
    "indexof",
    "intersection",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "lower",
    "max",
    "min",
    "object.filter",
    "object.get",
    "object.keys",
    "object.remove",
    "object.subset",
    "object.union",
    "regex.is_valid",
    "regex.match",
    "round",
    "sort",
    "split",
    "startswith",
    "strings.any_prefix_match",
    "strings.any_suffix_match",
    "strings.count",
    "substring",
    "sum",
    "to_number",
    "trim",
    "trim_left",
    "trim_prefix",
    "trim_right",
    "trim_space",
    "trim_suffix",
    "type_name",
    "union",
    "upper",
];

/// Functions of the language that are missing from the engine's list of built-in functions.
const ABSENT: &[&str] =
    &["time.now_ns", "uuid.rfc4122", "http.send", "opa.runtime", "net.lookup_ip_addr", "print"];

/// Whether a policy may call this name: it is on the list, or not a function of the language.
#[must_use]
pub fn may_call(name: &str) -> bool {
    FUNCTIONS.binary_search(&name).is_ok()
        || !(BUILTINS.contains_key(name) || ABSENT.contains(&name))
}

pub(super) fn refusal(name: &str) -> String {
    format!(
        "{name}: a policy may not call it; it sees its input and nothing else, and the time is input.now"
    )
}

/// A parsed and analysed policy.
#[derive(Clone)]
pub struct Program(Engine);

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

impl Program {
    pub(super) fn new(text: &str) -> Result<Self, PolicyError> {
        let bad = |text: String| PolicyError::Rego { text };
        let mut engine = Engine::new();
        if let Some(max_file_bytes) = NonZeroUsize::new(MAX_BYTES) {
            engine.set_policy_length_config(PolicyLengthConfig {
                max_file_bytes,
                ..PolicyLengthConfig::default()
            });
        }
        engine.set_strict_builtin_errors(true);
        // The engine looks up extensions before its own functions, so every call by a forbidden
        // name ends here, however the name was formed.
        let arities =
            BUILTINS.iter().map(|(name, (_, arity))| (*name, *arity)).chain([("print", 1)]);
        for (name, arity) in arities.filter(|(name, _)| !may_call(name)) {
            let refuse = move |_: Vec<Value>| Err(io::Error::other(refusal(name)).into());
            engine
                .add_extension(name.into(), arity, Box::new(refuse))
                .map_err(|error| bad(error.to_string()))?;
        }
        let package = engine
            .add_policy("policy.rego".into(), text.into())
            .map_err(|error| bad(error.to_string()))?;
        if package != "data.shef" {
            return Err(bad(format!("the package is {package:?}, expected `package shef`")));
        }
        // Analyses the policy now, so that one that cannot run is rejected here.
        match engine.compile_with_entrypoint(&ALLOW.into()) {
            Ok(_) => Ok(Self(engine)),
            Err(error) if error.to_string().contains("not a valid rule path") => {
                Err(bad("there is no rule `allow`".into()))
            }
            Err(error) => Err(bad(error.to_string())),
        }
    }

    /// Whether the policy allows `input`, a JSON object. After an error the engine is not reused:
    /// the next evaluation creates a new one, so that no state of an aborted evaluation remains.
    ///
    /// # Errors
    /// The policy could not be decided.
    pub fn evaluate(&mut self, input: &str) -> Result<bool, RegoError> {
        self.evaluate_within(input, MAX_TIME)
    }

    /// The same, with another wall-clock limit.
    ///
    /// # Errors
    /// The policy could not be decided.
    pub fn evaluate_within(&mut self, input: &str, limit: Duration) -> Result<bool, RegoError> {
        let failed = |text: String| RegoError::Failed { text };
        let engine = &mut self.0;
        if let Some(check_interval) = NonZeroU32::new(64) {
            engine.set_execution_timer_config(ExecutionTimerConfig { limit, check_interval });
        }
        engine.set_input(Value::from_json_str(input).map_err(|error| failed(error.to_string()))?);
        match engine.eval_rule(ALLOW.into()) {
            Ok(Value::Bool(allow)) => Ok(allow),
            Ok(Value::Undefined) => Ok(false),
            Ok(other) => Err(failed(format!("allow is not true or false but {}", kind(&other)))),
            // The engine's text holds the elapsed time, which is not a function of the input.
            Err(error) if error.to_string().contains("exceeded time limit") => Err(RegoError::Time),
            Err(error) => {
                Err(failed(error.to_string().lines().last().unwrap_or_default().to_owned()))
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_and_of_functions_that_exist() {
        assert!(FUNCTIONS.is_sorted());
        for name in FUNCTIONS {
            assert!(BUILTINS.contains_key(name), "{name}");
        }
        assert!(!BUILTINS.keys().any(|name| ABSENT.contains(name)), "no name stands in both lists");
    }
}
