//! The CPUs that matter: the isolated ones, which are the shards', or all where none is isolated.

use super::checks::{Finding, at_most, finding};
use super::read::{Host, cpu_list};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of each of them.
pub(super) fn all(host: &Host) -> Vec<Finding> {
    let cpus = that_matter(host);
    vec![
        governor(host, &cpus),
        idle_states(host, &cpus),
        siblings(host, &cpus),
        nodes(host, &cpus),
    ]
}

/// The isolated ones, or all.
fn that_matter(host: &Host) -> Vec<u32> {
    let list = |path| host.text(path).and_then(|text| cpu_list(&text));
    let isolated = list("sys/devices/system/cpu/isolated").filter(|cpus| !cpus.is_empty());
    isolated
        .or_else(|| list("sys/devices/system/cpu/online"))
        .unwrap_or_default()
}

/// The memory nodes of the CPUs that matter.
pub(super) fn nodes_that_matter(host: &Host) -> BTreeSet<u32> {
    let cpus = that_matter(host);
    let has_one = |node: &u32| {
        let list = host.text(&format!("sys/devices/system/node/node{node}/cpulist"));
        let of_node = list.and_then(|list| cpu_list(&list)).unwrap_or_default();
        cpus.iter().any(|cpu| of_node.contains(cpu))
    };
    let names = host.names("sys/devices/system/node");
    let nodes = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok());
    nodes.filter(has_one).collect()
}

fn governor(host: &Host, cpus: &[u32]) -> Finding {
    let of = |cpu: u32| host.text(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    let mut by_governor = BTreeMap::<String, Vec<u32>>::new();
    for &cpu in cpus {
        if let Some(governor) = of(cpu) {
            by_governor.entry(governor).or_default().push(cpu);
        }
    }
    let is_one = by_governor.len() == 1;
    let shown = by_governor.iter().map(|(governor, cpus)| {
        if is_one {
            governor.clone()
        } else {
            format!("{governor} on {}", list(cpus))
        }
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    finding(
        "governor",
        Some(shown).filter(|shown| !shown.is_empty()),
        "performance",
        |text| text == "performance",
        "a CPU that slowed down takes time to speed up",
        "cpupower frequency-set -g performance",
    )
}

fn idle_states(host: &Host, cpus: &[u32]) -> Finding {
    let slowest = cpus.iter().filter_map(|cpu| {
        let base = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
        let states = host.names(&base);
        let on = states
            .iter()
            .filter(|state| host.text(&format!("{base}/{state}/disable")).as_deref() == Some("0"));
        on.filter_map(|state| host.text(&format!("{base}/{state}/latency"))?.parse::<u64>().ok())
            .max()
    });
    finding(
        "c_state_exit_us",
        slowest.max().map(|us| us.to_string()),
        "at most 10",
        |text| at_most(text, 10),
        "a CPU that sleeps deeply takes as long to wake up",
        "cpupower idle-set -D 10, or boot with processor.max_cstate=1",
    )
}

/// CPUs that share a core with one that matters.
fn siblings(host: &Host, cpus: &[u32]) -> Finding {
    let of = |cpu: &u32| {
        let list = host.text(&format!(
            "sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        ))?;
        cpu_list(&list)
    };
    let groups = cpus.iter().filter_map(of).collect::<BTreeSet<_>>();
    let shared = groups.iter().filter(|group| group.len() > 1).map(|group| list(group));
    let shared = shared.collect::<Vec<_>>();
    let current = if shared.is_empty() {
        "none".to_owned()
    } else {
        format!("share a core: {}", shared.join(", "))
    };
    finding(
        "smt",
        Some(current).filter(|_| !groups.is_empty()),
        "none that shares its core with another thread",
        |text| text == "none",
        "two threads share a core and its caches",
        "boot with nosmt, or echo 0 > /sys/devices/system/cpu/cpuN/online for the siblings",
    )
}

fn nodes(host: &Host, cpus: &[u32]) -> Finding {
    let nodes = nodes_that_matter(host).into_iter().collect::<Vec<_>>();
    let current = (!nodes.is_empty()).then(|| list(&nodes));
    finding(
        "numa_nodes",
        current.map(|nodes| format!("CPUs {} are on {nodes}", list(cpus))),
        "one node",
        |_| nodes.len() == 1,
        "memory and cards of another node are farther away",
        "take CPUs of the node of the network card: numactl --cpunodebind --membind",
    )
}

fn list(numbers: &[u32]) -> String {
    let texts = numbers.iter().map(u32::to_string).collect::<Vec<_>>();
    texts.join("+")
}

#[cfg(test)]
mod tests {
    use super::super::checks::Verdict;
    use super::super::read::with;
    use super::*;

    const CPU: &str = "sys/devices/system/cpu";

    /// Four CPUs, of which 2 and 3 share a core, 3 is slow and 0 sleeps deeply; 0 and 1 are on a node of their own.
    fn findings(isolated: &str) -> Vec<Finding> {
        let file = |cpu: u32, name: &str| format!("{CPU}/cpu{cpu}/{name}");
        let mut files = vec![
            (format!("{CPU}/online"), "0-3"),
            (format!("{CPU}/isolated"), isolated),
            ("sys/devices/system/node/node0/cpulist".to_owned(), "0-1"),
            ("sys/devices/system/node/node1/cpulist".to_owned(), "2-3"),
            (file(0, "cpuidle/state1/latency"), "2"),
            (file(0, "cpuidle/state1/disable"), "0"),
            (file(0, "cpuidle/state2/latency"), "133"),
            (file(0, "cpuidle/state2/disable"), "0"),
            (file(1, "cpuidle/state1/latency"), "2"),
            (file(1, "cpuidle/state1/disable"), "0"),
            (file(1, "cpuidle/state2/latency"), "133"),
            (file(1, "cpuidle/state2/disable"), "1"),
        ];
        for (cpu, siblings, governor) in [
            (0, "0", "performance"),
            (1, "1", "performance"),
            (2, "2-3", "performance"),
            (3, "2-3", "powersave"),
        ] {
            files.push((file(cpu, "topology/thread_siblings_list"), siblings));
            files.push((file(cpu, "cpufreq/scaling_governor"), governor));
        }
        let files = files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect::<Vec<_>>();
        let (_root, host) = with(&files);
        all(&host)
    }

    fn verdicts(findings: &[Finding]) -> Vec<(&str, Verdict, &str)> {
        findings
            .iter()
            .map(|finding| {
                let current = finding.current.as_deref().unwrap_or("unknown");
                (finding.name.as_str(), finding.verdict, current)
            })
            .collect()
    }

    #[test]
    fn without_isolated_cpus_all_of_them_matter() {
        let findings = findings("");
        assert_eq!(
            verdicts(&findings),
            [
                ("governor", Verdict::Miss, "performance on 0+1+2, powersave on 3"),
                ("c_state_exit_us", Verdict::Miss, "133"),
                ("smt", Verdict::Miss, "share a core: 2+3"),
                ("numa_nodes", Verdict::Miss, "CPUs 0+1+2+3 are on 0+1"),
            ]
        );
    }

    #[test]
    fn isolated_cpus_are_those_that_matter() {
        let findings = findings("1");
        assert_eq!(
            verdicts(&findings),
            [
                ("governor", Verdict::Fine, "performance"),
                ("c_state_exit_us", Verdict::Fine, "2"),
                ("smt", Verdict::Fine, "none"),
                ("numa_nodes", Verdict::Fine, "CPUs 1 are on 0"),
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_no_miss() {
        let (_root, empty) = with(&[]);
        assert!(all(&empty).iter().all(|finding| finding.verdict == Verdict::Unknown));
    }
}
