//! The network cards.

use super::checks::{Finding, Verdict, at_least, finding};
use super::cpus::nodes_that_matter;
use super::read::Host;
use net::nic::{NicSettings, XdpMode};

/// Every interface that is up, without loopback.
pub(super) fn all(host: &Host) -> Vec<Finding> {
    let is_up = |name: &String| host.text(&format!("sys/class/net/{name}/operstate")).as_deref() == Some("up");
    let names = host.names("sys/class/net");
    let cards = names.iter().filter(|name| *name != "lo" && is_up(name));
    cards
        .flat_map(|name| {
            let settings = net::nic::settings(name).unwrap_or_default();
            let mut findings = card(name, &settings);
            findings.extend(files(host, name));
            findings.push(node(host, name));
            findings
        })
        .collect()
}

/// What the driver says.
fn card(name: &str, settings: &NicSettings) -> Vec<Finding> {
    let on = |flag: Option<bool>| flag.map(|on| if on { "on" } else { "off" }.to_owned());
    let is = |what: &str, current: Option<String>, wanted: &str, is_fine: bool, why, fix: String| {
        let verdict = match (&current, is_fine) {
            (None, _) => Verdict::Unknown,
            (_, true) => Verdict::Fine,
            _ => Verdict::Miss,
        };
        let (name, wanted) = (format!("{name}.{what}"), wanted.to_owned());
        Finding {
            name,
            current,
            wanted,
            why,
            fix,
            verdict,
        }
    };
    let ring = settings.rx_ring;
    let ring_text = ring.map(|(now, most)| format!("{now} of {most}"));
    let usecs = settings.rx_usecs.map(|us| us.to_string());
    let queues = settings.rx_queues.map(|queues| queues.to_string());
    vec![
        is(
            "rx_usecs",
            usecs,
            "0",
            settings.rx_usecs == Some(0),
            "the card waits so long before it tells of a frame",
            format!("ethtool -C {name} rx-usecs 0"),
        ),
        is(
            "adaptive_rx",
            on(settings.adaptive_rx),
            "off",
            settings.adaptive_rx == Some(false),
            "the card changes that wait by itself",
            format!("ethtool -C {name} adaptive-rx off"),
        ),
        is(
            "gro",
            on(settings.gro),
            "off",
            settings.gro == Some(false),
            "frames wait to be put together with others",
            format!("ethtool -K {name} gro off"),
        ),
        is(
            "lro",
            on(settings.lro),
            "off",
            settings.lro == Some(false),
            "the card keeps frames to put them together",
            format!("ethtool -K {name} lro off"),
        ),
        is(
            "pause",
            on(settings.pause),
            "off",
            settings.pause == Some(false),
            "one slow receiver stops everybody behind the switch",
            format!("ethtool -A {name} rx off tx off"),
        ),
        is(
            "rx_ring",
            ring_text,
            "at least 512, or all there can be",
            ring.is_some_and(|(now, most)| now >= 512.min(most)),
            "a burst that finds the ring full is lost",
            format!("ethtool -G {name} rx 1024"),
        ),
        is(
            "rx_queues",
            queues,
            "1 or more",
            settings.rx_queues.is_some_and(|queues| queues > 0),
            "flows are spread between queues, and a shard hears one",
            format!("ethtool -L {name} combined N; ethtool -N steers a flow"),
        ),
        is(
            "hardware_stamps",
            on(settings.hardware_stamps),
            "on",
            settings.hardware_stamps == Some(true),
            "without them the time of arrival is when the kernel got to it",
            "use a card that stamps".to_owned(),
        ),
        is(
            "xdp",
            settings.xdp.map(|mode| mode.to_string()),
            "none, native or offloaded",
            matches!(settings.xdp, Some(XdpMode::None | XdpMode::Native | XdpMode::Offloaded)),
            "a generic program runs when the kernel has already made its packet",
            format!("ip link set {name} xdpgeneric off; use a card whose driver has the hook"),
        ),
    ]
}

/// What the kernel says.
fn files(host: &Host, name: &str) -> Vec<Finding> {
    let file = |what: &str, why, value: u64| {
        let current = host.text(&format!("sys/class/net/{name}/{what}"));
        let verdict = match &current {
            None => Verdict::Unknown,
            Some(text) if at_least(text, 1) => Verdict::Fine,
            Some(_) => Verdict::Miss,
        };
        Finding {
            name: format!("{name}.{what}"),
            current,
            wanted: "above 0, with busy polling".to_owned(),
            why,
            fix: format!("echo {value} > /sys/class/net/{name}/{what}"),
            verdict,
        }
    };
    vec![
        file(
            "napi_defer_hard_irqs",
            "the card's interrupt disturbs a thread that polls",
            200,
        ),
        file(
            "gro_flush_timeout",
            "the interrupt comes back when nobody polls for so long, ns",
            200_000,
        ),
    ]
}

/// Whether the card is near the CPUs that matter. A card that is on no node, or has none to tell of, is as near as any.
fn node(host: &Host, name: &str) -> Finding {
    let nodes = nodes_that_matter(host);
    let is_near = |text: &str| text == "-1" || text.parse().is_ok_and(|node| nodes.contains(&node));
    finding(
        &format!("{name}.numa_node"),
        host.text(&format!("sys/class/net/{name}/device/numa_node")),
        "that of the shards' CPUs",
        is_near,
        "each frame crosses to the other node",
        "isolate CPUs of the card's node, or move the card",
    )
}

#[cfg(test)]
mod tests {
    use super::super::read::with;
    use super::*;

    #[test]
    fn a_card_on_another_node_than_the_cpus_is_a_miss() {
        let of = |place| {
            let (_root, host) = with(&[
                ("sys/devices/system/cpu/isolated", "2"),
                ("sys/devices/system/node/node0/cpulist", "0-1"),
                ("sys/devices/system/node/node1/cpulist", "2-3"),
                ("sys/class/net/eth0/device/numa_node", place),
            ]);
            node(&host, "eth0").verdict
        };
        assert_eq!(of("1"), Verdict::Fine);
        assert_eq!(of("-1"), Verdict::Fine);
        assert_eq!(of("0"), Verdict::Miss);
        let (_root, empty) = with(&[]);
        assert_eq!(node(&empty, "eth0").verdict, Verdict::Unknown);
    }

    #[test]
    fn a_card_that_waits_is_a_miss_and_one_that_says_nothing_is_none() {
        let settings = NicSettings {
            rx_usecs: Some(30),
            gro: Some(false),
            rx_ring: Some((256, 4_096)),
            xdp: Some(XdpMode::Generic),
            ..NicSettings::default()
        };
        let verdicts: Vec<_> = card("eth0", &settings)
            .into_iter()
            .map(|finding| (finding.name, finding.verdict))
            .collect();
        let of = |name: &str| verdicts.iter().find(|(found, _)| found == name).unwrap().1;
        assert_eq!(of("eth0.rx_usecs"), Verdict::Miss);
        assert_eq!(of("eth0.gro"), Verdict::Fine);
        assert_eq!(of("eth0.rx_ring"), Verdict::Miss);
        assert_eq!(of("eth0.pause"), Verdict::Unknown);
        assert_eq!(of("eth0.xdp"), Verdict::Miss);
    }
}
