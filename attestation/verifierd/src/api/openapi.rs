//! The API description (OpenAPI 3.1), from the table of routes and the schemas of the contract.

use shef_api::Problem;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{KnownFormat, SchemaFormat};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Content, Info, License, ObjectBuilder, OpenApi, OpenApiBuilder, Paths,
    Required, Response, ResponseBuilder, Schema, Type,
};

use super::routes::{self, ROUTES, Route, Schemas, Takes};
use super::veraison;
use crate::role::Need;

/// Parameters in the path and in the query.
fn parameters(route: &Route) -> Vec<Parameter> {
    let in_path =
        route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(|name| {
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .build()
    });
    in_path.chain((route.query)()).collect()
}

fn body(route: &Route, schemas: &mut Schemas) -> Option<RequestBody> {
    let bytes = || {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        let schema = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
        Content::new(Some(Schema::from(schema)))
    };
    let content: Vec<(String, Content)> = match (route.body, route.takes) {
        (Some(schema), _) => {
            vec![("application/json".into(), Content::new(Some(schema(schemas))))]
        }
        (None, Takes::Nothing) => return None,
        (None, Takes::One(types)) => {
            types.iter().map(|media| ((*media).to_owned(), bytes())).collect()
        }
        (None, Takes::Evidence) => {
            veraison::evidence_types().into_iter().map(|media| (media, bytes())).collect()
        }
        (None, Takes::Bytes) => vec![("application/octet-stream".into(), bytes())],
    };
    let required = if route.takes == Takes::Nothing { Required::False } else { Required::True };
    let body = RequestBodyBuilder::new().required(Some(required));
    Some(content.into_iter().fold(body, |body, (media, of)| body.content(media, of)).build())
}

/// Statuses of the problems of a route.
#[must_use]
pub fn refusals(route: &Route) -> Vec<u16> {
    // Any route can meet a fault, too many requests or an unreachable store.
    let mut all = vec![500, 503];
    if route.need != Need::Open {
        all.extend([401, 403, 429]);
    }
    if route.path.contains('{') {
        all.extend([400, 404, 422]);
    }
    if route.changes() {
        all.extend([400, 403, 408, 413, 415]);
    }
    all.extend(route.refuses);
    all.sort_unstable();
    all.dedup();
    all
}

fn answer(gives: routes::Content, schemas: &mut Schemas) -> Response {
    let answer = ResponseBuilder::new().description("Done.");
    match gives {
        routes::Content::Nothing => answer,
        routes::Content::Json(media, schema) => {
            answer.content(media, Content::new(Some(schema(schemas))))
        }
        routes::Content::Other(types) => {
            types.iter().fold(answer, |answer, media| answer.content(*media, Content::default()))
        }
    }
    .build()
}

/// The API description.
#[must_use]
pub fn openapi() -> OpenApi {
    let (mut paths, mut schemas) = (Paths::new(), Schemas::new());
    let problem = Content::new(Some(routes::schema::<Problem>(&mut schemas)));
    let problem = ResponseBuilder::new()
        .description("What went wrong.")
        .content("application/problem+json", problem)
        .build();
    for route in ROUTES {
        let operation = OperationBuilder::new()
            .summary(Some(route.summary))
            .operation_id(Some(operation_id(route.method, route.path)))
            .parameters(Some(parameters(route)))
            .request_body(body(route, &mut schemas))
            .response(route.status.to_string(), answer(route.gives, &mut schemas));
        let operation = refusals(route).into_iter().fold(operation, |operation, status| {
            operation.response(status.to_string(), problem.clone())
        });
        let operation = match route.need {
            Need::Open => operation.securities(Some([])),
            _ => operation,
        };
        let method = match route.method {
            "GET" => HttpMethod::Get,
            "PUT" => HttpMethod::Put,
            "DELETE" => HttpMethod::Delete,
            _ => HttpMethod::Post,
        };
        paths.add_path_operation(route.path, vec![method], operation);
    }
    let mut info = Info::new("shef-verifierd", env!("CARGO_PKG_VERSION"));
    info.license = Some(License::new("Apache-2.0 OR MIT"));
    let ways = [
        ("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer))),
        (
            "mutualTLS",
            SecurityScheme::MutualTls { description: None, deprecated: None, extensions: None },
        ),
    ];
    let security = ways.each_ref().map(|(way, _)| SecurityRequirement::new(*way, [""; 0]));
    let components = ComponentsBuilder::new().schemas_from_iter(schemas);
    let components =
        ways.into_iter().fold(components, |all, (way, scheme)| all.security_scheme(way, scheme));
    OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .components(Some(components.build()))
        .security(Some(security))
        .build()
}

fn operation_id(method: &str, path: &str) -> String {
    let words = path
        .split(['/', '.', '-'])
        .map(|part| part.trim_matches(['{', '}']))
        .filter(|part| !part.is_empty());
    std::iter::once(method.to_ascii_lowercase())
        .chain(words.map(str::to_owned))
        .collect::<Vec<_>>()
        .join("_")
}
