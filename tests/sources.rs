//! Rules that can be read off the sources: where `unsafe` may stand, what cores may use, what the path of an order avoids.

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below a folder of the workspace.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has no sources");
    found
}

/// The code of a file before its tests, without comments.
fn code(text: &str) -> String {
    let before_tests = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    before_tests
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn lib(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name).join("src/lib.rs")).expect("a crate")
}

#[test]
fn cores_have_no_std_and_no_unsafe() {
    for core in ["types", "proto", "matcher", "orders"] {
        let lib = lib(core);
        assert!(lib.contains("#![no_std]"), "{core} is no_std");
        assert!(lib.contains("#![forbid(unsafe_code)]"), "{core} forbids unsafe");
    }
}

#[test]
fn only_net_and_latency_may_hold_unsafe() {
    for crate_without in ["journal", "feeds", "sim", "gateway"] {
        assert!(
            lib(crate_without).contains("#![forbid(unsafe_code)]"),
            "{crate_without} forbids unsafe"
        );
    }
    for (path, text) in sources("cli") {
        assert!(!code(&text).contains("unsafe"), "{}", path.display());
    }
}

#[test]
fn cores_read_no_clock() {
    for core in ["types/src", "proto/src", "matcher/src", "orders/src"] {
        for (path, text) in sources(core) {
            let code = code(&text);
            for clock in ["Instant", "SystemTime", "rdtsc", "clock_gettime"] {
                assert!(!code.contains(clock), "{} uses {clock}", path.display());
            }
        }
    }
}

#[test]
fn the_path_of_an_order_has_no_dyn_and_no_async() {
    let path = [
        "gateway/src/shard.rs",
        "gateway/src/live.rs",
        "gateway/src/worker.rs",
        "gateway/src/marks.rs",
        "gateway/src/clients.rs",
        "gateway/src/client_output.rs",
        "gateway/src/outbox.rs",
        "gateway/src/crossing.rs",
        "gateway/src/filter.rs",
        "gateway/src/shared_limits.rs",
        "gateway/src/session",
        "gateway/src/shard",
        "prefilter/src",
        "orders/src",
        "proto/src",
        "net/src/link",
        "net/src/tcp.rs",
        "net/src/udp.rs",
        "net/src/carrier.rs",
        "net/src/xdp",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for place in path {
        let files = match root.join(place) {
            file if file.is_file() => vec![(file.clone(), fs::read_to_string(&file).expect("a source"))],
            _ => sources(place),
        };
        let is_test = |file: &Path| file.file_name().is_some_and(|name| name == "tests.rs");
        for (file, text) in files.into_iter().filter(|(file, _)| !is_test(file)) {
            let code = code(&text);
            for word in ["dyn ", "async ", ".await"] {
                assert!(!has_word(&code, word), "{} has `{word}`", file.display());
            }
        }
    }
}

/// Whether `word` stands in the code and not only at the start of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    code.match_indices(word)
        .any(|(at, _)| word.ends_with(' ') || is_end(&code[at + word.len()..]))
}

#[test]
fn the_guard_sees_a_word_and_not_a_longer_one() {
    assert!(has_word("x.await?", ".await"));
    assert!(!has_word("connection.awaits_writable", ".await"));
    assert!(has_word("&dyn Link", "dyn "));
}

/// The names of the `repr(C)` structs of a file whose size nothing asserts at compile time.
fn without_size(code: &str) -> Vec<String> {
    let after = code.split("#[repr(C").skip(1);
    let names = after.filter_map(|rest| {
        let (_, rest) = rest.split_once("struct ")?;
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
        Some(rest[..end].to_owned())
    });
    names
        .filter(|name| !code.contains(&format!("assert!(size_of::<{name}>() == ")))
        .collect()
}

#[test]
fn every_wire_struct_has_its_size_asserted() {
    let mut count = 0;
    for (path, text) in sources("proto/src") {
        let code = code(&text);
        assert_eq!(without_size(&code), Vec::<String>::new(), "{}", path.display());
        count += code.matches("#[repr(C").count();
    }
    assert!(count > 20, "{count} wire structs");
}

#[test]
fn the_guard_of_sizes_sees_a_struct_without_one() {
    let code = "#[repr(C)]\n#[derive(Clone)]\nstruct Known {}\n#[repr(C)]\npub struct Forgotten {}\n\
                const _: () = assert!(size_of::<Known>() == 0);";
    assert_eq!(without_size(code), ["Forgotten"]);
}

#[test]
fn nothing_that_decides_uses_floating_point() {
    for folder in [
        "proto/src",
        "matcher/src",
        "orders/src",
        "net/src",
        "prefilter/src",
        "gateway/src",
        "feeds/src",
        "sim/src",
    ] {
        for (path, text) in sources(folder) {
            let code = code(&text);
            let is_float = |word: &str| word == "f64" || word == "f32";
            let mut words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            assert!(!words.any(is_float), "{}", path.display());
        }
    }
}

#[test]
fn no_file_outgrows_its_ceiling() {
    for folder in [
        "types",
        "proto",
        "matcher",
        "orders",
        "journal",
        "net",
        "latency",
        "prefilter",
        "feeds",
        "sim",
        "gateway",
        "cli",
        "tests",
        "benches",
    ] {
        for (path, text) in sources(folder) {
            assert!(
                text.lines().count() <= 1_000,
                "{} has {} lines",
                path.display(),
                text.lines().count()
            );
        }
    }
}
