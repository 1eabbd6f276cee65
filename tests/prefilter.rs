//! `tickgate prefilter`, as a user runs it.

use std::process::Command;

fn conform(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tickgate"))
        .args(["prefilter", "conform"])
        .args(arguments)
        .output()
        .expect("the program runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn the_software_backend_conforms_to_the_golden_script() {
    let (status, text) = conform(&[]);
    assert_eq!((status, text.as_str()), (Some(0), "2457 orders, 0 verdicts differ\n"));
}

#[test]
fn a_verdict_that_differs_is_printed_and_the_status_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script.txt");
    std::fs::write(&script, "commit\nframe 1 0 00 0 0 0\n").expect("a file");
    let (status, text) = conform(&["--script", script.to_str().expect("a path")]);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.starts_with(
            "order 0: expected sequence 0 generation 1 pass action 0 route 0, \
             found sequence 0 generation 1 LEN action 5 route 0\ncounters: "
        ),
        "{text}"
    );
    std::fs::write(&script, "commit\nframe\n").expect("a file");
    let (status, text) = conform(&["--script", script.to_str().expect("a path")]);
    assert_eq!(
        (status, text.as_str()),
        (Some(1), "tickgate: line 2: a number expected\n")
    );
}
