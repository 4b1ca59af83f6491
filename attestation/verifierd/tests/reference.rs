//! `docs/reference/verifier-routes.md` is made from the table of routes, the types of the contract
//! and the codes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use shef_verifierd::api::{ROUTES, Route, openapi};
use shef_verifierd::problem::Kind;
use shef_verifierd::role::Need;

/// Rewrites the page instead of comparing it.
const WRITE: &str = "SHEF_WRITE";

const HEAD: &str = "\
# Verifier service: routes, types, codes

The tables below are generated from the table of routes that admits requests, from the types of the
crate `shef-api`, which the service and its clients share, and from the codes:
`SHEF_WRITE=1 cargo test -p shef-verifierd reference` rewrites this page. [Verifier service
API](verifier-api.md) says what the requests do; `GET /v1/openapi.json` describes the same as OpenAPI,
with all statuses.
";

/// A row of a table; `|` separates cells only.
fn row(cells: &[String]) -> String {
    let cells: Vec<_> =
        cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn link(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}

/// A schema in words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return link(name.rsplit('/').next().unwrap());
    }
    if let Some(one) = schema["oneOf"].as_array() {
        return one.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        Value::String(kind) if kind == "array" => {
            format!("list of {}", self::kind(&schema["items"]))
        }
        Value::String(kind) => kind.clone(),
        _ => "any".to_owned(),
    }
}

fn content(of: &Value) -> String {
    let Some(content) = of["content"].as_object() else { return String::new() };
    let schema = content.values().next().map(|content| &content["schema"]);
    match schema.filter(|schema| schema["$ref"].is_string()) {
        Some(schema) => kind(schema),
        None => content.keys().map(|media| format!("`{media}`")).collect::<Vec<_>>().join(", "),
    }
}

fn routes(api: &Value) -> String {
    let mut text = "\n## Routes\n\n[Roles](verifier-api.md#authentication-and-roles) have rights: `read` is that of `audit`, `operate`
that of `operator`. A request may have the parameters behind `?`; members marked `?` may be missing.\n\n| request | right | body | answer | |\n|---|---|---|---|---|\n".to_owned();
    let mut all = BTreeSet::new();
    for Route { method, path, need, status, summary, .. } in ROUTES {
        let operation = &api["paths"][*path][method.to_lowercase()];
        let query: Vec<_> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "query")
            .collect();
        for parameter in &query {
            let text = |name: &str| parameter[name].as_str().unwrap().to_owned();
            all.insert([
                format!("`{}`", text("name")),
                kind(&parameter["schema"]),
                text("description"),
            ]);
        }
        let names: Vec<_> =
            query.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
        let names = if names.is_empty() { String::new() } else { format!("?{}", names.join("&")) };
        let right = match need {
            Need::Open => String::new(),
            _ => format!("{need:?}").to_lowercase(),
        };
        let optional = if operation["requestBody"]["required"] == false { " or none" } else { "" };
        let given = content(&operation["responses"][status.to_string()]);
        text += &row(&[
            format!("`{method} {path}{names}`"),
            right,
            content(&operation["requestBody"]) + optional,
            format!("{status} {given}").trim().to_owned(),
            (*summary).to_owned(),
        ]);
    }
    text += "\n## Parameters\n\n| parameter | type | |\n|---|---|---|\n";
    text + &all.iter().map(|cells| row(cells)).collect::<String>()
}

fn members(schema: &Value, text: &mut String) {
    for part in schema["allOf"].as_array().into_iter().flatten() {
        match part["$ref"].as_str() {
            Some(_) => text.push_str(&row(&[
                "the members of".to_owned(),
                kind(part),
                part["description"].as_str().unwrap_or_default().to_owned(),
            ])),
            None => members(part, text),
        }
    }
    let required = schema["required"].as_array();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let given = required.is_some_and(|all| all.iter().any(|one| one == name.as_str()));
        let described = [&member["description"], &member["oneOf"][0]["description"]];
        let said = described.iter().find_map(|text| text.as_str()).unwrap();
        let mark = if given { "" } else { "?" };
        text.push_str(&row(&[format!("`{name}{mark}`"), kind(member), said.to_owned()]));
    }
}

fn types(api: &Value) -> String {
    let mut text = "\n## Types\n".to_owned();
    for (name, schema) in api["components"]["schemas"].as_object().unwrap() {
        write!(text, "\n### {name}\n\n{}\n", schema["description"].as_str().unwrap()).unwrap();
        let values: Vec<_> = schema["enum"].as_array().into_iter().flatten().collect();
        if !values.is_empty() {
            let values: Vec<_> =
                values.iter().map(|value| format!("`{}`", value.as_str().unwrap())).collect();
            writeln!(text, "\nOne of {}.", values.join(", ")).unwrap();
        } else if schema["type"] != "string" {
            text += "\n| member | type | |\n|---|---|---|\n";
            members(schema, &mut text);
        }
    }
    text
}

fn codes() -> String {
    let mut text = "\n## Codes\n\n`shef-verifierd explain CODE` and `shef explain CODE` say what helps.\n\n| status | code | |\n|---|---|---|\n".to_owned();
    let mut all: Vec<_> =
        Kind::CODES.iter().filter_map(|code| Some((code.status?, code))).collect();
    all.sort_by_key(|(status, code)| (*status, code.id));
    for (status, code) in all {
        text += &row(&[status.to_string(), code.id.to_owned(), code.summary.to_owned()]);
    }
    text
}

#[test]
fn the_page_of_routes_is_that_of_the_service() {
    let api = serde_json::to_value(openapi()).unwrap();
    let text = HEAD.to_owned() + &routes(&api) + &types(&api) + &codes();
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/verifier-routes.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&page, &text).unwrap();
    }
    let found = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        found == text,
        "{} is of another version: `{WRITE}=1 cargo test -p shef-verifierd reference` rewrites it",
        page.display()
    );
}

#[test]
fn codes_of_the_service_are_a_group_of_their_own() {
    for (group, codes) in shef_verifierd::codes() {
        assert!(!codes.is_empty(), "{group}");
        for code in codes {
            let own = code.id.starts_with("SHEF-SVC-");
            assert_eq!(own, group == "verifier service", "{} in {group}", code.id);
        }
    }
}
