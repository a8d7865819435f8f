//! The description of the API, and the page that uses it. (Every answer in the other tests is held
//! against the description too.)

mod common;

use std::collections::BTreeSet;

use common::openapi::{description, wrong};
use common::{Running, config};
use serde_json::json;

/// Methods and addresses that the program has, by its source.
fn routes() -> BTreeSet<(String, String)> {
    let source = include_str!("../src/http/mod.rs");
    let mut routes = BTreeSet::new();
    for line in source.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")) {
        let (path, handlers) = line.split_once('"').unwrap();
        let methods = ["get", "post", "delete", "put", "patch"].into_iter();
        let there: Vec<&str> = methods.filter(|method| handlers.contains(&format!("{method}("))).collect();
        assert!(!there.is_empty(), "{line}");
        routes.extend(there.into_iter().map(|method| (path.to_owned(), method.to_owned())));
    }
    routes
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let paths = description()["paths"].as_object().unwrap();
    let described: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone())))
        .collect();
    assert_eq!(described, routes());
    let operations = || paths.values().flat_map(|methods| methods.as_object().unwrap().values());
    let names: BTreeSet<&str> = operations().map(|operation| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(names.len(), described.len(), "each has a name of its own");
}

#[test]
fn the_check_sees_what_is_wrong() {
    let count = json!({"$ref": "#/components/schemas/Count"});
    let good = json!({"estimate": 1, "lower": 0, "upper": 2});
    assert!(wrong(&count, &good, "it").is_empty());
    let bad = [
        json!({"estimate": 1, "lower": 0}),
        json!({"estimate": 1, "lower": 0, "upper": 2, "more": 3}),
        json!({"estimate": -1, "lower": 0, "upper": 2}),
        json!({"estimate": "1", "lower": 0, "upper": 2}),
        json!({"estimate": 1.5, "lower": 0, "upper": 2}),
        json!(null),
    ];
    for bad in bad {
        assert!(!wrong(&count, &bad, "it").is_empty(), "{bad}");
    }
}

#[test]
fn the_description_and_the_page_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let get = |path: &str| running.request("GET", path, None, b"");
    assert_eq!(&get("/v1/openapi.json").json(), description());
    let page = get("/");
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    assert!(page.head.contains("x-content-type-options: nosniff"));
    let text = page.text();
    // The policy forbids scripts and styles in the page itself.
    assert!(!text.contains("<style") && !text.contains(" style=") && !text.contains(" onclick="));
    assert_eq!(text.matches("<script").count(), text.matches("<script src=\"/page.js\" defer>").count());
    for name in ["/page.js", "/page.css"] {
        assert!(text.contains(&format!("\"{name}\"")) && get(name).status == 200);
    }
    // Names from elsewhere are set as text.
    let script = get("/page.js").text();
    assert!(!script.contains("innerHTML") && !script.contains("insertAdjacentHTML") && !script.contains("eval("));
    // Every element that the script asks for is there.
    for id in script.split("$('").skip(1).map(|rest| rest.split('\'').next().unwrap()) {
        assert!(text.contains(&format!("id=\"{id}\"")), "{id}");
    }
}
