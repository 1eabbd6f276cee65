//! The list: what is looked at, what it should be, why, and how to get there.

use super::read::{Host, chosen, cpu_list, parameter, steal};
use serde_json::{Value, json};
use std::fmt;

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding {
    pub(super) name: String,
    /// `None`: it could not be read.
    pub(super) current: Option<String>,
    pub(super) wanted: String,
    pub(super) why: &'static str,
    pub(super) fix: String,
    pub(super) verdict: Verdict,
}

/// How it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Fine,
    Miss,
    /// It could not be read, or is not there.
    Unknown,
}

/// What is wanted of a text.
type Test = fn(&str) -> bool;

/// A file whose text says it all: name, path, wanted, test, why, fix.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    Test,
    &'static str,
    &'static str,
);

/// Files of one value.
const FILES: &[Row] = &[
    (
        "sched_autogroup",
        "proc/sys/kernel/sched_autogroup_enabled",
        "0",
        |text| text == "0",
        "with it, nice counts only within a session",
        "sysctl kernel.sched_autogroup_enabled=0",
    ),
    (
        "rt_throttling",
        "proc/sys/kernel/sched_rt_runtime_us",
        "-1",
        |text| text == "-1",
        "real-time threads are stopped for 50 ms of each second",
        "sysctl kernel.sched_rt_runtime_us=-1",
    ),
    (
        "clocksource",
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc",
        |text| text == "tsc",
        "another clock costs a system call or a read of a slow device for each stamp",
        "boot with clocksource=tsc tsc=reliable, if the counter is invariant",
    ),
    (
        "transparent_hugepages",
        "sys/kernel/mm/transparent_hugepage/enabled",
        "madvise or never",
        |text| matches!(chosen(text), Some("madvise" | "never")),
        "pages are put together while a thread that touches them waits",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    ),
    (
        "numa_balancing",
        "proc/sys/kernel/numa_balancing",
        "0",
        |text| text == "0",
        "pages are unmapped to see who uses them, and moved",
        "sysctl kernel.numa_balancing=0",
    ),
    (
        "tcp_congestion_control",
        "proc/sys/net/ipv4/tcp_congestion_control",
        "cubic or reno",
        |text| matches!(text, "cubic" | "reno"),
        "others pace, which holds back what could leave now",
        "sysctl net.ipv4.tcp_congestion_control=cubic",
    ),
    (
        "tcp_rto_min_us",
        "proc/sys/net/ipv4/tcp_rto_min_us",
        "at most 20000",
        |text| at_most(text, 20_000),
        "a lost last segment is sent again only after it (our sockets ask for less by themselves)",
        "sysctl net.ipv4.tcp_rto_min_us=8000",
    ),
    (
        "tcp_slow_start_after_idle",
        "proc/sys/net/ipv4/tcp_slow_start_after_idle",
        "0",
        |text| text == "0",
        "after a pause a connection starts slowly again",
        "sysctl net.ipv4.tcp_slow_start_after_idle=0",
    ),
    (
        "tcp_autocorking",
        "proc/sys/net/ipv4/tcp_autocorking",
        "0",
        |text| text == "0",
        "small sends wait for the card to finish earlier ones",
        "sysctl net.ipv4.tcp_autocorking=0",
    ),
    (
        "busy_read",
        "proc/sys/net/core/busy_read",
        "50 or more",
        |text| at_least(text, 50),
        "receives look at the card's queue instead of waiting for its interrupt",
        "sysctl net.core.busy_read=50",
    ),
    (
        "busy_poll",
        "proc/sys/net/core/busy_poll",
        "50 or more",
        |text| at_least(text, 50),
        "epoll looks at the card's queue instead of waiting for its interrupt",
        "sysctl net.core.busy_poll=50",
    ),
    (
        "rmem_max",
        "proc/sys/net/core/rmem_max",
        "4194304 or more",
        |text| at_least(text, 4 << 20),
        "a burst that finds no room in the socket is lost",
        "sysctl net.core.rmem_max=16777216",
    ),
    (
        "wmem_max",
        "proc/sys/net/core/wmem_max",
        "4194304 or more",
        |text| at_least(text, 4 << 20),
        "a burst that finds no room in the socket waits",
        "sysctl net.core.wmem_max=16777216",
    ),
];

/// Parameters of the kernel's command line that hold CPUs: name, why.
const CPU_PARAMETERS: &[(&str, &str)] = &[
    ("isolcpus", "the scheduler puts other threads on the CPUs of the shards"),
    ("nohz_full", "the timer interrupts a thread that is alone on its CPU"),
    ("rcu_nocbs", "the kernel's deferred work runs on the CPUs of the shards"),
];

/// Everything but CPUs, network cards and the probe. `ticks_per_second` was measured.
pub(super) fn host(host: &Host, ticks_per_second: Option<u32>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = FILES.iter().map(|row| file(host, row)).collect();
    findings.extend(CPU_PARAMETERS.iter().map(|(name, why)| cpu_parameter(host, name, why)));
    findings.extend([
        mitigations(host),
        tick(host, ticks_per_second),
        preemption(host),
        stolen(host),
        irqbalance(host),
        irq_affinity(host),
        memlock(),
        open_files(),
    ]);
    findings
}

fn file(host: &Host, &(name, path, wanted, test, why, fix): &Row) -> Finding {
    finding(name, host.text(path), wanted, test, why, fix)
}

pub(super) fn finding(
    name: &str,
    current: Option<String>,
    wanted: &str,
    test: impl Fn(&str) -> bool,
    why: &'static str,
    fix: &str,
) -> Finding {
    let verdict = match &current {
        None => Verdict::Unknown,
        Some(text) if test(text) => Verdict::Fine,
        Some(_) => Verdict::Miss,
    };
    Finding {
        name: name.to_owned(),
        current,
        wanted: wanted.to_owned(),
        why,
        fix: fix.to_owned(),
        verdict,
    }
}

fn cpu_parameter(host: &Host, name: &'static str, why: &'static str) -> Finding {
    let cmdline = host.text("proc/cmdline");
    let current = cmdline.map(|cmdline| parameter(&cmdline, name).unwrap_or("absent").to_owned());
    // isolcpus may begin with words: domain, managed_irq, nohz.
    let holds = |text: &str| {
        let cpus = text.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        text != "absent" && cpu_list(cpus).is_some_and(|cpus| !cpus.is_empty())
    };
    finding(
        name,
        current,
        "the CPUs of the shards",
        holds,
        why,
        &format!("boot with {name}=CPUS"),
    )
}

fn mitigations(host: &Host) -> Finding {
    let cmdline = host.text("proc/cmdline");
    let current = cmdline.map(|cmdline| parameter(&cmdline, "mitigations").unwrap_or("absent").to_owned());
    let why = "each system call pays for them";
    let fix = "boot with mitigations=off, where nobody else's code runs on the machine";
    finding("mitigations", current, "off", |text| text == "off", why, fix)
}

/// The kernel's configuration, if it tells.
fn config(host: &Host) -> Option<String> {
    let release = host.text("proc/sys/kernel/osrelease")?;
    host.text(&format!("boot/config-{release}"))
}

fn tick(host: &Host, measured: Option<u32>) -> Finding {
    let hz = config(host).and_then(|text| {
        let told = text.lines().find_map(|line| line.strip_prefix("CONFIG_HZ="))?;
        Some(told.to_owned())
    });
    // Many a container and small machine has no such file.
    let hz = hz.or_else(|| measured.map(|hz| hz.to_string()));
    let why = "TCP's shortest retransmission timeout is two ticks";
    finding(
        "hz",
        hz,
        "1000",
        |text| at_least(text, 1_000),
        why,
        "use a kernel with CONFIG_HZ=1000",
    )
}

fn preemption(host: &Host) -> Finding {
    // The kernel says it in its version, and where debugfs can be read, in brackets.
    let debug = host.text("sys/kernel/debug/sched/preempt");
    let dynamic = debug.as_deref().map(|text| {
        text.split_whitespace()
            .find(|word| word.starts_with('('))
            .unwrap_or(text)
    });
    let current = dynamic
        .map(|word| word.trim_matches(['(', ')']).to_owned())
        .or_else(|| {
            let version = host.text("proc/sys/kernel/version")?;
            version
                .split_whitespace()
                .find(|word| word.starts_with("PREEMPT"))
                // That one is chosen at boot, and only debugfs says what.
                .filter(|word| *word != "PREEMPT_DYNAMIC")
                .map(str::to_owned)
        });
    let why = "a kernel that does not give way delays a thread that has become ready";
    let holds = |text: &str| text.starts_with("PREEMPT") || matches!(text, "full" | "lazy");
    finding("preemption", current, "full", holds, why, "boot with preempt=full")
}

fn stolen(host: &Host) -> Finding {
    let part = host.text("proc/stat").and_then(|stat| steal(&stat));
    let current = part.map(|part| format!("{}.{:02} %", part / 100, part % 100));
    let why = "the hypervisor gave the CPU to somebody else";
    let holds = move |_: &str| part.is_some_and(|part| part < 10);
    finding(
        "steal",
        current,
        "below 0.10 % since boot",
        holds,
        why,
        "use dedicated CPUs or a machine of one's own",
    )
}

fn irqbalance(host: &Host) -> Finding {
    let is_name = |text: Option<String>| text.as_deref() == Some("irqbalance");
    let processes = host.names("proc");
    let mut numbers = processes
        .iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let runs = numbers.any(|name| is_name(host.text(&format!("proc/{name}/comm"))));
    let current = Some(if runs { "runs" } else { "does not run" }.to_owned());
    let why = "it moves interrupts onto any CPU";
    finding(
        "irqbalance",
        current,
        "does not run",
        |text| text != "runs",
        why,
        "systemctl disable --now irqbalance",
    )
}

fn irq_affinity(host: &Host) -> Finding {
    let isolated = host
        .text("sys/devices/system/cpu/isolated")
        .and_then(|text| cpu_list(&text))
        .unwrap_or_default();
    let on_isolated = |name: &String| {
        let cpus = host.text(&format!("proc/irq/{name}/effective_affinity_list"));
        let cpus = cpus.and_then(|text| cpu_list(&text)).unwrap_or_default();
        cpus.iter().any(|cpu| isolated.contains(cpu))
    };
    let current =
        (!isolated.is_empty()).then(|| host.names("proc/irq").iter().filter(|name| on_isolated(name)).count());
    let why = "an interrupt stops the thread that spins there";
    let fix = "write other CPUs to /proc/irq/N/smp_affinity_list";
    finding(
        "irqs_on_isolated_cpus",
        current.map(|count| count.to_string()),
        "0",
        |text| text == "0",
        why,
        fix,
    )
}

fn memlock() -> Finding {
    let limit = net::host::memlock();
    let why = "each shard locks 512 KiB for io_uring, AF_XDP its frames";
    let holds = move |_: &str| limit.soft.is_none_or(|soft| soft >= 64 << 20);
    finding(
        "memlock_bytes",
        Some(limit.to_string()),
        "64 MiB or more",
        holds,
        why,
        "ulimit -l unlimited, or LimitMEMLOCK=infinity",
    )
}

fn open_files() -> Finding {
    let limit = net::host::open_files();
    let why = "each session is an open file";
    let holds = move |_: &str| limit.hard.is_none_or(|hard| hard >= 4_096);
    let current = format!(
        "{limit}, to be raised to {}",
        limit.hard.map_or("any".to_owned(), |hard| hard.to_string())
    );
    finding(
        "open_files",
        Some(current),
        "4096 or more",
        holds,
        why,
        "ulimit -n 65536, or LimitNOFILE=65536",
    )
}

pub(super) fn at_least(text: &str, least: u64) -> bool {
    text.parse::<u64>().is_ok_and(|value| value >= least)
}

pub(super) fn at_most(text: &str, most: u64) -> bool {
    text.parse::<u64>().is_ok_and(|value| value <= most)
}

impl Finding {
    pub(super) fn json(&self) -> Value {
        let verdict = match self.verdict {
            Verdict::Fine => "fine",
            Verdict::Miss => "miss",
            Verdict::Unknown => "unknown",
        };
        json!({
            "name": self.name,
            "verdict": verdict,
            "current": self.current,
            "wanted": self.wanted,
            "why": self.why,
            "fix": self.fix,
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.current.as_deref().unwrap_or("cannot be read here");
        match self.verdict {
            Verdict::Fine => write!(f, "ok    {}: {current}", self.name),
            Verdict::Unknown => write!(f, "?     {}: {current}; wanted {}", self.name, self.wanted),
            Verdict::Miss => write!(
                f,
                "MISS  {}: {current}; wanted {}\n      why: {}\n      fix: {}",
                self.name, self.wanted, self.why, self.fix
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::with;
    use super::*;

    fn verdict(findings: &[Finding], name: &str) -> Verdict {
        findings.iter().find(|finding| finding.name == name).unwrap().verdict
    }

    #[test]
    fn a_tuned_host_is_fine_and_an_untuned_one_is_told_why() {
        let (_root, tuned) = with(&[
            (
                "proc/cmdline",
                "ro isolcpus=managed_irq,1-3 nohz_full=1-3 rcu_nocbs=1-3 mitigations=off\n",
            ),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("proc/sys/net/ipv4/tcp_rto_min_us", "8000\n"),
            ("proc/stat", "cpu  50 0 20 20 0 0 0 0 0 0\n"),
        ]);
        let (_root, untuned) = with(&[
            ("proc/cmdline", "ro quiet\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
            ("proc/sys/net/ipv4/tcp_rto_min_us", "200000\n"),
            ("proc/stat", "cpu  50 0 20 20 0 0 0 10 0 0\n"),
        ]);
        let (tuned, untuned) = (host(&tuned, Some(1_000)), host(&untuned, Some(250)));
        let names = [
            "isolcpus",
            "nohz_full",
            "rcu_nocbs",
            "mitigations",
            "transparent_hugepages",
            "tcp_rto_min_us",
            "steal",
            "hz",
        ];
        for name in names {
            assert_eq!(verdict(&tuned, name), Verdict::Fine, "{name}");
            assert_eq!(verdict(&untuned, name), Verdict::Miss, "{name}");
        }
    }

    #[test]
    fn the_kernels_own_word_for_its_ticks_goes_before_what_was_measured() {
        let (_root, told) = with(&[
            ("proc/sys/kernel/osrelease", "6.1.0"),
            ("boot/config-6.1.0", "CONFIG_HZ_1000=y\nCONFIG_HZ=1000\n"),
        ]);
        assert_eq!(verdict(&host(&told, Some(250)), "hz"), Verdict::Fine);
    }

    #[test]
    fn what_cannot_be_read_is_no_miss() {
        let (_root, empty) = with(&[]);
        let findings = host(&empty, None);
        for name in ["clocksource", "hz", "isolcpus", "irqs_on_isolated_cpus"] {
            assert_eq!(verdict(&findings, name), Verdict::Unknown, "{name}");
        }
    }
}
