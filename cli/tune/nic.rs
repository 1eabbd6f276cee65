//! The network cards.

use super::checks::{Finding, Verdict, at_least};
use super::read::Host;
use net::nic::NicSettings;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_waits_is_a_miss_and_one_that_says_nothing_is_none() {
        let settings = NicSettings {
            rx_usecs: Some(30),
            gro: Some(false),
            rx_ring: Some((256, 4_096)),
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
    }
}
