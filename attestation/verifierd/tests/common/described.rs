//! Every response in every test must match the service's API description.

use std::sync::LazyLock;

use serde_json::Value;

use super::Answer;

static API: LazyLock<Value> = LazyLock::new(shef_verifierd::api::openapi);

/// Paths of other services' protocols, which have their own descriptions.
const ELSEWHERE: [&str; 4] =
    ["/kbs/", "/challenge-response/", "/endorsement-provisioning/", "/.well-known/veraison/"];

fn is_of(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) =
        (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(path).all(|(known, part)| known.starts_with('{') || *known == part)
}

/// Panics if the response's status, a member of its body or an accepted parameter is not described.
#[track_caller]
pub fn hold(method: &str, path: &str, answer: &Answer) {
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    if ELSEWHERE.iter().any(|start| plain.starts_with(start)) {
        return;
    }
    let paths = API["paths"].as_object().unwrap();
    // A path without parameters comes before one with them.
    let known = paths.get(plain).or_else(|| {
        paths.iter().find(|(template, _)| is_of(template, plain)).map(|(_, known)| known)
    });
    let Some(operation) = known.and_then(|known| known.get(method.to_ascii_lowercase())) else {
        return;
    };
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{method} {path}: status {} is not described", answer.status);
    if !(200..300).contains(&answer.status) {
        return;
    }
    for (name, _) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let known = operation["parameters"]
            .as_array()
            .is_some_and(|all| all.iter().any(|parameter| parameter["name"] == name));
        assert!(known, "{method} {path}: parameter {name} is not described");
    }
    let media = answer
        .headers
        .get("content-type")
        .map_or("", |media| media.to_str().unwrap().split(';').next().unwrap());
    let content = &response["content"];
    assert!(
        content.is_null() == answer.bytes.is_empty(),
        "{method} {path}: a body, or none, against the description"
    );
    if !content.is_null() {
        assert!(
            content[media].is_object(),
            "{method} {path}: media type {media:?} is not described"
        );
        if let Some(schema) = content[media].get("schema") {
            check(&format!("{method} {path}"), schema, &answer.json());
        }
    }
}

fn check(place: &str, schema: &Value, value: &Value) {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(kinds.contains(&kind), "{place}: {kind} where {kinds:?} is described");
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&format!("{place}[{at}]"), &schema["items"], item);
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let known = &schema["properties"][name];
        assert!(known.is_object(), "{place}: member {name} is not described");
        check(&format!("{place}.{name}"), known, member);
    }
    if kind == "object" {
        for name in schema["required"].as_array().unwrap() {
            assert!(
                value.get(name.as_str().unwrap()).is_some(),
                "{place}: member {name} is described and missing"
            );
        }
    }
}
