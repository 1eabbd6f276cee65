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
}

/// Each says what is wrong and where, and shows nothing.
#[test]
fn what_cannot_be_run_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script.txt");
    let path = script.to_str().expect("a path");
    for (text, words) in [
        ("", "line 1: a commit, first of all expected"),
        ("commit\n", "0 verdicts differ\n"),
        ("commit\n", "has no orders"),
        ("commit\nframe\n", "line 2: a number expected"),
        ("commit\nsymbol 1024 1 0 0 0\n", "id 1024 is beyond the table of 1024"),
    ] {
        std::fs::write(&script, text).expect("a file");
        let (status, said) = conform(&["--script", path]);
        assert!(
            status == Some(1) && said.contains(words) && said.contains(path),
            "{text:?}: {said}"
        );
    }
    let (status, said) = conform(&["--script", "/nowhere"]);
    assert!(
        status == Some(1) && said.starts_with("tickgate: reading /nowhere: "),
        "{said}"
    );
    let (status, said) = conform(&["--backend", "fpga"]);
    assert!(
        status == Some(2) && said.contains("software, rtl64, rtl512, rings, xdp, vfio"),
        "{said}"
    );
}

#[test]
fn a_backend_that_this_build_lacks_is_named_with_what_it_takes() {
    let lacks = |backend, feature: &str| {
        let (status, said) = conform(&["--backend", backend]);
        assert!(
            status == Some(1) && said.contains(&format!("--features {feature}")),
            "{said}"
        );
    };
    if !cfg!(feature = "rtl-sim") {
        for backend in ["rtl64", "rtl512", "rings"] {
            lacks(backend, "rtl-sim");
        }
    }
    if !cfg!(feature = "xdp") {
        lacks("xdp", "xdp");
    }
}

#[test]
fn a_board_is_named_by_its_place_on_the_bus() {
    let (status, said) = conform(&["--backend", "vfio"]);
    assert!(status == Some(2) && said.contains("--device"), "{said}");
    let (status, said) = conform(&["--device", "0000:01:00.0"]);
    assert!(
        status == Some(1) && said.contains("--device is for --backend vfio"),
        "{said}"
    );
    let (status, said) = conform(&["--backend", "vfio", "--device", "ffff:ff:1f.7"]);
    assert!(
        status == Some(1) && said.contains("opening ffff:ff:1f.7 by VFIO: /sys/bus/pci"),
        "{said}"
    );
}
