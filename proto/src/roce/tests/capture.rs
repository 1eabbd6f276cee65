//! A packet capture of every opcode, for another dissector to read: `ROCE_PCAP=FILE cargo test -p proto roce::tests::capture`
//! writes it (`.ci/extended rocev2` does and has tshark read it).

use super::*;
use crate::roce::wire::Opcode;
use std::{env, fs};

/// Everything that two ends say to each other, and notifications, refusals and losses among it.
fn conversation() -> Pair {
    let mut pair = Pair::new(config());
    for id in 0..6 {
        pair.ends[B].receive(receive(id, 1_000));
    }
    // Of zeros a dissector may think that they are something.
    pair.ends[A].fill(OWN, 700, 0x55);
    pair.ends[B].fill(REACHED, 700, 0xaa);
    let immediate = Some(0xcafe_f00d);
    pair.ends[A].post(send(1, 1));
    pair.ends[A].post(send(2, 700));
    for length in [5, 700] {
        let operation = Operation::Send { immediate };
        pair.ends[A].post(SendRequest {
            operation,
            ..send(3, length)
        });
        pair.ends[A].post(write(A, 4, 0, length, None));
        pair.ends[A].post(write(A, 5, 0, length, immediate));
        pair.ends[A].post(read(A, 6, 0, length));
    }
    let mut count = 0;
    pair.finish_with(|from, _| {
        count += 1;
        match count {
            5 => Fate::Lose,
            9 if from == A => Fate::ArriveMarked,
            _ => Fate::Arrive,
        }
    });
    // No receive is left, and then a wrong key.
    pair.ends[A].post(send(7, 10));
    pair.settle();
    pair.ends[B].receive(receive(7, 10));
    let mut wrong = write(A, 8, 0, 8, None);
    if let Operation::Write { to, .. } = &mut wrong.operation {
        to.key += 1;
    }
    pair.ends[A].post(wrong);
    pair.finish();
    pair
}

#[test]
fn the_conversation_has_every_opcode_that_an_end_sends() {
    let pair = conversation();
    let mut opcodes: Vec<_> = [A, B]
        .iter()
        .flat_map(|&index| pair.opcodes(index))
        .map(|opcode| opcode as u8)
        .collect();
    opcodes.sort_unstable();
    opcodes.dedup();
    let served = (0..=Opcode::Acknowledge as u8).chain([Opcode::CongestionNotification as u8]);
    assert_eq!(opcodes, served.collect::<Vec<_>>());
    if let Ok(file) = env::var("ROCE_PCAP") {
        fs::write(file, pcap(&pair)).unwrap();
    }
}

/// In raw IPv4 frames.
fn pcap(pair: &Pair) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, LINKTYPE_RAW] {
        file.extend(u32::to_le_bytes(word));
    }
    for (sent, number) in pair.sent.iter().zip(0u32..) {
        let frame = frame(sent);
        let length = frame.len() as u32;
        for word in [0, number, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn frame(sent: &Sent) -> Vec<u8> {
    let length = sent.bytes.len() as u16 + 8;
    let [high, low] = (length + 20).to_be_bytes();
    let [from, to] = [sent.from, 1 - sent.from].map(|index| [10, 9, 0, [1, 2][index]]);
    let mut frame = vec![0x45, 2, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0];
    frame.extend(from);
    frame.extend(to);
    let sum: u32 = frame
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[10..12].copy_from_slice(&sum.to_be_bytes());
    for word in [wire::UDP_PORT, wire::UDP_PORT, length, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(&sent.bytes);
    frame
}

/// Frames begin with the IP header.
const LINKTYPE_RAW: u32 = 101;
