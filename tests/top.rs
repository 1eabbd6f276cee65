//! `tickgate top --rdma`, on whatever host this is.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[test]
fn a_host_without_rdma_is_told_so_in_one_line_and_one_with_it_is_shown() {
    let top = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickgate"));
        command.arg("top").args(args).output().expect("the program starts")
    };
    let output = top(&["--rdma", "--json", "--interval", "0.1", "--count", "2"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    let devices = Path::new("/sys/class/infiniband").read_dir();
    if devices.is_ok_and(|mut devices| devices.next().is_some()) {
        assert_eq!(output.status.code(), Some(0), "{error}");
        assert_eq!(text.lines().count(), 2);
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert!(line["ports"].is_array(), "{line}");
        }
    } else {
        assert_eq!(output.status.code(), Some(1));
        assert_eq!((text.lines().count(), error.lines().count()), (0, 1), "{error}");
        assert!(error.contains("no RDMA device"), "{error}");
    }
    for wrong in [
        &[][..],
        &["--rdma", "--interval", "0"],
        &["--rdma", "--interval", "NaN"],
        &["--rdma", "--count", "0"],
    ] {
        assert_eq!(top(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
