//! Packets that Nasdaq sent. `TICKGATE_DATA` names the folder that has captures of them in `pcap/nasdaq`.

use proto::itch::{self, Message};
use proto::mold::{Content, Packet};
use std::path::Path;

/// UDP payloads of a capture: little-endian pcap, Ethernet with an 802.1Q tag, IPv4 without options.
fn payloads(capture: &[u8]) -> Vec<&[u8]> {
    const FILE_HEADER: usize = 24;
    const RECORD_HEADER: usize = 16;
    const ETHERNET_IP_UDP: usize = 14 + 4 + 20 + 8;
    let mut payloads = Vec::new();
    let mut rest = &capture[FILE_HEADER..];
    while let Some((record, after)) = rest.split_at_checked(RECORD_HEADER) {
        let length = u32::from_le_bytes(record[8..12].try_into().expect("four bytes")) as usize;
        let (frame, after) = after.split_at(length);
        payloads.push(&frame[ETHERNET_IP_UDP..]);
        rest = after;
    }
    payloads
}

#[test]
fn packets_of_the_exchange_are_read() {
    let Some(data) = std::env::var_os("TICKGATE_DATA") else {
        eprintln!("skipped: TICKGATE_DATA does not name the folder of captures");
        return;
    };
    let folder = Path::new(&data).join("pcap/nasdaq");
    let (mut packets, mut adds, mut messages) = (0, 0, 0);
    for entry in std::fs::read_dir(&folder).expect("folder") {
        let path = entry.expect("entry").path();
        let name = path.file_name().expect("name").to_string_lossy().into_owned();
        if !name.contains(".Itch.v5.0.") {
            continue;
        }
        let capture = std::fs::read(&path).expect("capture");
        for payload in payloads(&capture) {
            let packet = Packet::parse(payload).unwrap_or_else(|error| panic!("{name}: {error}"));
            packets += 1;
            let Content::Messages(blocks) = packet.content else {
                continue;
            };
            for block in blocks {
                let message = itch::parse(block).unwrap_or_else(|error| panic!("{name}: {error}"));
                messages += 1;
                adds += u32::from(matches!(message, Message::AddOrder(_)));
            }
        }
    }
    assert_eq!((packets, messages, adds), (12, 49, 38));
}
