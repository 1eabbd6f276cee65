//! Who may import whom: the table of ARCHITECTURE.md, held against `cargo metadata`.

use std::collections::BTreeMap;
use std::process::Command;

/// Each crate, its layer, and the crates of the workspace that it may import.
const TABLE: &[(&str, u8, &[&str])] = &[
    ("types", 0, &[]),
    ("proto", 1, &["types"]),
    ("matcher", 1, &["types"]),
    ("orders", 1, &["types", "matcher"]),
    ("latency", 2, &["types", "proto", "matcher", "orders", "net"]),
    ("net", 2, &["types", "proto", "matcher", "orders", "latency"]),
    ("journal", 2, &["types", "proto", "matcher", "orders", "net", "latency"]),
    (
        "prefilter",
        2,
        &["types", "proto", "matcher", "orders", "net", "latency"],
    ),
    ("feeds", 2, &["types", "proto", "matcher", "orders", "net", "latency"]),
    (
        "sim",
        2,
        &[
            "types", "proto", "matcher", "orders", "net", "latency", "journal", "feeds",
        ],
    ),
    (
        "gateway",
        3,
        &[
            "types",
            "proto",
            "matcher",
            "orders",
            "net",
            "latency",
            "journal",
            "feeds",
            "sim",
            "prefilter",
        ],
    ),
    (
        "tickgate",
        3,
        &[
            "types",
            "proto",
            "matcher",
            "orders",
            "net",
            "latency",
            "journal",
            "feeds",
            "sim",
            "gateway",
            "prefilter",
        ],
    ),
];

/// The normal dependencies of each crate of the workspace, as cargo has them.
fn imports() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let text = |value: &serde_json::Value| value.as_str().expect("a name").to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("dependencies");
            let normal = dependencies.iter().filter(|dependency| dependency["kind"].is_null());
            (
                text(&package["name"]),
                normal.map(|dependency| text(&dependency["name"])).collect(),
            )
        })
        .collect()
}

/// What breaks the table.
fn violations(imports: &BTreeMap<String, Vec<String>>, table: &[(&str, u8, &[&str])]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, dependencies) in imports {
        let Some((_, _, allowed)) = table.iter().find(|(known, ..)| known == name) else {
            found.push(format!("{name} is not in the table"));
            continue;
        };
        let is_ours = |dependency: &&String| imports.contains_key(*dependency);
        for dependency in dependencies.iter().filter(is_ours) {
            if !allowed.contains(&dependency.as_str()) {
                found.push(format!("{name} imports {dependency}"));
            }
        }
    }
    found
}

#[test]
fn every_crate_imports_only_what_its_layer_allows() {
    let imports = imports();
    assert_eq!(imports.len(), TABLE.len(), "crates: {:?}", imports.keys());
    assert_eq!(violations(&imports, TABLE), Vec::<String>::new());
}

#[test]
fn the_guard_sees_an_import_that_is_not_allowed() {
    let mut imports = imports();
    imports
        .get_mut("proto")
        .expect("proto is a crate")
        .push("net".to_owned());
    assert_eq!(violations(&imports, TABLE), ["proto imports net"]);
}
