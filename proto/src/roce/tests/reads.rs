//! RDMA READ.

use super::*;
use crate::roce::wire::{Class, Opcode};

#[test]
fn a_read_brings_what_the_peer_has_whatever_its_length() {
    for length in [0, 1, 255, 256, 257, 1_000, 5_000] {
        let mut pair = Pair::new(config());
        let bytes = pair.ends[B].fill(REACHED + 40, length, 3);
        let mut expected = pair.ends[A].memory.clone();
        expected[OWN..OWN + length].copy_from_slice(&bytes);
        pair.ends[A].post(read(A, 5, 40, length));
        pair.finish();
        assert_eq!(requests(&pair.ends[A]), [(5, Ok(()))]);
        assert_eq!(pair.ends[A].memory, expected, "{length} bytes");
    }
}

#[test]
fn a_read_sees_the_writes_before_it_and_acknowledges_them() {
    let mut pair = Pair::new(config());
    let bytes = pair.ends[A].fill(OWN, 700, 4);
    pair.ends[A].post(write(A, 1, 0, 700, None));
    let back = SendRequest {
        offset: OWN + 1_000,
        ..read(A, 2, 0, 700)
    };
    pair.ends[A].post(back);
    pair.settle();
    assert_eq!(pair.ends[A].memory[OWN + 1_000..OWN + 1_700], bytes);
    assert_eq!(requests(&pair.ends[A]), [(1, Ok(())), (2, Ok(()))]);
    assert!(!pair.opcodes(B).contains(&Opcode::Acknowledge));
}

#[test]
fn no_more_reads_are_under_way_than_allowed() {
    let mut pair = Pair::new(Config { reads: 2, ..config() });
    for id in 0..10 {
        pair.ends[A].post(read(A, id, 0, 300));
    }
    let first = pair.ends[A].transmit(pair.now);
    assert_eq!(first.len(), 2);
    for bytes in first {
        pair.deliver(&Sent { from: A, bytes }, false);
    }
    pair.finish();
    assert_eq!(requests(&pair.ends[A]).len(), 10);
    assert_eq!(pair.failures(), [None, None]);
}

#[test]
fn any_packet_of_a_response_may_be_lost() {
    for lost in 0..6 {
        let mut pair = Pair::new(config());
        let bytes = pair.ends[B].fill(REACHED, 1_500, 5);
        pair.ends[A].post(read(A, 1, 0, 1_500));
        pair.ends[A].post(write(A, 2, 4_000, 10, None));
        let mut responses = 0;
        pair.finish_with(|_, packet| {
            if packet.opcode.shape().class != Class::ReadResponse {
                return Fate::Arrive;
            }
            responses += 1;
            if responses == lost + 1 {
                Fate::Lose
            } else {
                Fate::Arrive
            }
        });
        assert_eq!(
            requests(&pair.ends[A]),
            [(1, Ok(())), (2, Ok(()))],
            "response {lost} lost"
        );
        assert_eq!(pair.ends[A].memory[OWN..OWN + 1_500], bytes);
        let counters = pair.ends[A].pair.counters();
        assert_eq!(counters.implied_nak_seq_err + counters.local_ack_timeout_err, 1);
        // Only what is missing is asked for again.
        assert_eq!(responses, 6 + 6 - lost);
    }
}

#[test]
fn an_acknowledgement_that_overtakes_the_response_does_not_stand_for_it() {
    let mut pair = Pair::new(Config {
        ack_every: 1,
        ..config()
    });
    let bytes = pair.ends[B].fill(REACHED, 100, 6);
    pair.ends[A].post(read(A, 1, 0, 100));
    pair.ends[A].post(write(A, 2, 4_000, 10, None));
    pair.finish_with({
        let mut is_first = true;
        move |_, packet| {
            let is_response = packet.opcode.shape().class == Class::ReadResponse;
            if is_response && core::mem::take(&mut is_first) {
                Fate::Lose
            } else {
                Fate::Arrive
            }
        }
    });
    assert_eq!(pair.ends[A].memory[OWN..OWN + 100], bytes);
    assert_eq!(pair.ends[A].pair.counters().implied_nak_seq_err, 1);
    assert_eq!(pair.ends[A].pair.counters().local_ack_timeout_err, 0);
}

#[test]
fn a_response_of_another_length_breaks_the_pair_and_writes_nothing() {
    let mut pair = Pair::new(config());
    pair.ends[A].post(read(A, 1, 0, 100));
    let before = pair.ends[A].memory.clone();
    pair.ends[A].transmit(pair.now);
    let answer = Packet {
        opcode: Opcode::ReadResponseOnly,
        payload: &[7; 104],
        acknowledgement: Some(wire::Acknowledgement {
            syndrome: wire::Syndrome::Ack,
            msn: 1,
        }),
        ..hostile::packet(A, 0x12_3456)
    };
    pair.deliver(&hostile::sealed(B, &answer), false);
    assert_eq!(requests(&pair.ends[A]), [(1, Err(Failure::BadResponse))]);
    assert_eq!(pair.ends[A].memory, before);
}
