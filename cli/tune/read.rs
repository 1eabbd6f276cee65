//! Files of /proc and /sys, below any root so that tests have their own.

use std::fs;
use std::path::{Path, PathBuf};

/// A host, by its files.
#[derive(Clone, Debug)]
pub(super) struct Host(PathBuf);

impl Host {
    pub(super) fn new(root: impl AsRef<Path>) -> Self {
        Self(root.as_ref().to_owned())
    }

    /// The text of a file without blanks around it; `None` when there is none or it may not be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        Some(fs::read_to_string(self.0.join(path)).ok()?.trim().to_owned())
    }

    /// The names in a folder, sorted; none when there is no such folder.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// The numbers in a list such as `0-3,8`, as the kernel writes CPUs.
pub(super) fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('-') {
            None => cpus.push(part.parse().ok()?),
            Some((first, last)) => {
                let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
                // No kernel has more CPUs.
                cpus.extend(first..=last.min(first.saturating_add(8_191)));
            }
        }
    }
    Some(cpus)
}

/// The word in brackets of a choice such as `always [madvise] never`.
pub(super) fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

/// The value of a parameter of the kernel's command line; empty when it stands there without one.
pub(super) fn parameter<'a>(cmdline: &'a str, name: &str) -> Option<&'a str> {
    cmdline.split_whitespace().find_map(|word| match word.split_once('=') {
        Some((key, value)) => (key == name).then_some(value),
        None => (word == name).then_some(""),
    })
}

/// The part of all time, in hundredths of a per cent, that a hypervisor took: from the first line of /proc/stat.
pub(super) fn steal(stat: &str) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let all: u64 = ticks.iter().take(8).sum();
    (ticks.get(7)? * 10_000).checked_div(all)
}

/// A host with these files.
#[cfg(test)]
pub(super) fn with(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let host = Host::new(root.path());
    (root, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_choices_and_parameters_are_read_and_nonsense_is_none() {
        assert_eq!(cpu_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpu_list(""), Some(vec![]));
        assert_eq!(cpu_list("a-b"), None);
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("always"), None);
        let cmdline = "ro quiet isolcpus=1-3 nosmt";
        assert_eq!(parameter(cmdline, "isolcpus"), Some("1-3"));
        assert_eq!(parameter(cmdline, "nosmt"), Some(""));
        assert_eq!(parameter(cmdline, "nohz_full"), None);
    }

    #[test]
    fn stolen_time_is_a_part_of_all_time() {
        assert_eq!(steal("cpu  50 0 20 20 0 0 0 10 0 0\ncpu0 1"), Some(1_000));
        assert_eq!(steal("cpu  50 0"), None);
        assert_eq!(steal("cpu  0 0 0 0 0 0 0 0"), None);
        assert_eq!(steal("intr 1"), None);
    }
}
