//! Holds answers against the description of the API. It knows as much of JSON Schema as the
//! description uses, and panics at what it does not know.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::Response;

pub fn description() -> &'static Value {
    static DESCRIPTION: OnceLock<Value> = OnceLock::new();
    DESCRIPTION.get_or_init(|| serde_json::from_str(include_str!("../../openapi.json")).unwrap())
}

/// The description of an address, and how many of its parts are fixed.
fn find(path: &str) -> Option<&'static Map<String, Value>> {
    let parts: Vec<&str> = path.split('?').next().unwrap().split('/').collect();
    let matches = |template: &str| {
        let wanted: Vec<&str> = template.split('/').collect();
        let fits = wanted.len() == parts.len()
            && wanted
                .iter()
                .zip(&parts)
                .all(|(wanted, part)| wanted.starts_with('{') && !part.is_empty() || wanted == part);
        fits.then(|| wanted.iter().filter(|wanted| !wanted.starts_with('{')).count())
    };
    let paths = description()["paths"].as_object().unwrap().iter();
    let found = paths.filter_map(|(template, methods)| Some((matches(template)?, methods)));
    found.max_by_key(|(fixed, _)| *fixed).map(|(_, methods)| methods.as_object().unwrap())
}

/// Panics unless the description has this answer.
pub fn check(method: &str, path: &str, response: &Response) {
    let Some(methods) = find(path) else {
        assert_eq!(response.status, 404, "{method} {path} is not described");
        return;
    };
    let Some(operation) = methods.get(&method.to_ascii_lowercase()) else {
        assert_eq!(response.status, 405, "{method} {path} is not described");
        return;
    };
    let described = &operation["responses"][response.status.to_string()];
    let content = described["content"].as_object();
    let content = content.unwrap_or_else(|| panic!("{method} {path}: status {} is not described", response.status));
    let is_kind = |kind: &str| response.head.contains(&format!("content-type: {kind}"));
    let found = content.iter().find(|(kind, _)| is_kind(kind));
    let (kind, described) = found.unwrap_or_else(|| panic!("{method} {path}: {}", response.head));
    if kind.ends_with("json") {
        let wrong = wrong(&described["schema"], &response.json(), "answer");
        assert!(wrong.is_empty(), "{method} {path}: {wrong:?}");
    }
}

/// What is wrong with a value.
pub fn wrong(schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (word, says) in schema.as_object().expect("a schema is an object") {
        match word.as_str() {
            "description" | "format" | "pattern" => {}
            "$ref" => {
                let name = says.as_str().unwrap().strip_prefix("#/components/schemas/").unwrap();
                let named = &description()["components"]["schemas"][name];
                assert!(named.is_object(), "there is no schema {name}");
                found.extend(wrong(named, value, place));
            }
            "anyOf" => {
                let all: Vec<Vec<String>> =
                    says.as_array().unwrap().iter().map(|schema| wrong(schema, value, place)).collect();
                if all.iter().all(|wrong| !wrong.is_empty()) {
                    found.extend(all.concat());
                }
            }
            "type" => {
                let one = std::slice::from_ref(says);
                let kinds = says.as_array().map_or(one, Vec::as_slice);
                if !kinds.iter().any(|kind| is(kind.as_str().unwrap(), value)) {
                    found.push(format!("{place} is {value}, not {says}"));
                }
            }
            "enum" => {
                if !says.as_array().unwrap().contains(value) {
                    found.push(format!("{place} is {value}, not one of {says}"));
                }
            }
            "minimum" => {
                if value.as_f64() < says.as_f64() && value.is_number() {
                    found.push(format!("{place} is {value}, less than {says}"));
                }
            }
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                found.extend(items.flat_map(|(at, item)| wrong(says, item, &format!("{place}[{at}]"))));
            }
            "properties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    match says.get(name) {
                        Some(schema) => found.extend(wrong(schema, value, &format!("{place}.{name}"))),
                        None => found.push(format!("{place}.{name} is not described")),
                    }
                }
            }
            "required" => {
                for name in says.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        found.push(format!("{place} has no {name}"));
                    }
                }
            }
            // Held by `properties`.
            "additionalProperties" => assert_eq!(says, &Value::Bool(false)),
            _ => panic!("{word} in a schema"),
        }
    }
    found
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("{kind} is no type"),
    }
}
