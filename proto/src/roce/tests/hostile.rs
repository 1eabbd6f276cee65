//! Packets that no honest peer sends.

use super::*;
use crate::roce::wire::{Class, NakCode, Opcode, Reth, Syndrome};
use proptest::prelude::*;
use zerocopy::big_endian::{U32, U64};

/// A packet for the peer of `from`, with nothing behind its first header.
pub(super) fn packet(to: usize, psn: u32) -> Packet<'static> {
    Packet {
        opcode: Opcode::SendOnly,
        destination: [0x11, 0x22][to],
        psn,
        ack_request: true,
        is_backward_congestion: false,
        reth: None,
        acknowledgement: None,
        immediate: None,
        payload: &[],
    }
}

pub(super) fn sealed(from: usize, packet: &Packet<'_>) -> Sent {
    let mut bytes = vec![0; 8_192];
    let length = packet.encode(&mut bytes);
    let path = Path::new(address(from), address(1 - from));
    let length = path.seal(&mut bytes, length);
    bytes.truncate(length);
    Sent { from, bytes }
}

fn reth(key: u32, address: u64, length: usize) -> Option<Reth> {
    Some(Reth {
        address: U64::new(address),
        remote_key: U32::new(key),
        length: U32::new(length as u32),
    })
}

/// The first number that A sends, and so the one that B expects.
const PSN: u32 = 0x12_3456;

/// What B answers to packets of A, and whether anything in its arena changed.
fn answers(packets: &[Packet<'_>]) -> (Vec<Syndrome>, Pair) {
    let mut pair = Pair::new(config());
    let before = pair.ends[B].memory.clone();
    let mut syndromes = Vec::new();
    for packet in packets {
        pair.deliver(&sealed(A, packet), false);
        for bytes in pair.ends[B].transmit(pair.now) {
            syndromes.extend(
                decoded(&bytes)
                    .acknowledgement
                    .map(|acknowledgement| acknowledgement.syndrome),
            );
        }
    }
    assert!(pair.ends[B].memory == before, "a refused request changed the arena");
    (syndromes, pair)
}

fn is_refused(packets: &[Packet<'_>], code: NakCode) {
    let (syndromes, pair) = answers(packets);
    assert_eq!(syndromes.last(), Some(&Syndrome::Nak(code)), "{packets:x?}");
    assert_eq!(pair.failures()[B], Some(Failure::RefusedPeer(code)));
}

#[test]
fn a_wrong_key_and_wrong_bounds_are_refused_and_break_the_pair() {
    let (key, start) = (KEYS[B], ADDRESSES[B]);
    let wrong = [
        reth(key + 1, start, 8),
        reth(key, start - 1, 8),
        reth(key, start + PART as u64 - 7, 8),
        reth(key, start, PART + 1),
        reth(key, u64::MAX, 8),
        reth(key, u64::MAX - 7, usize::MAX),
    ];
    for reth in wrong {
        let write = Packet {
            opcode: Opcode::WriteOnly,
            reth,
            payload: &[1; 8],
            ..packet(B, PSN)
        };
        is_refused(&[write], NakCode::RemoteAccessError);
        let read = Packet {
            opcode: Opcode::ReadRequest,
            payload: &[],
            ..write
        };
        is_refused(&[read], NakCode::RemoteAccessError);
    }
}

#[test]
fn access_that_a_region_does_not_give_is_refused() {
    for (remote_read, remote_write, opcode) in [(false, true, Opcode::ReadRequest), (true, false, Opcode::WriteOnly)] {
        let mut pair = Pair::new(config());
        let end = &mut pair.ends[B];
        end.regions.deregister(KEYS[B]);
        let region = Region {
            remote_key: KEYS[B],
            address: ADDRESSES[B],
            offset: REACHED,
            length: PART,
            access: Access {
                remote_read,
                remote_write,
            },
        };
        end.regions.register(region).unwrap();
        pair.ends[A].post(match opcode {
            Opcode::ReadRequest => read(A, 1, 0, 8),
            _ => write(A, 1, 0, 8, None),
        });
        pair.finish();
        let refused = NakCode::RemoteAccessError;
        assert_eq!(requests(&pair.ends[A]), [(1, Err(Failure::Refused(refused)))]);
        let both = [Some(Failure::Refused(refused)), Some(Failure::RefusedPeer(refused))];
        assert_eq!(pair.failures(), both);
    }
}

#[test]
fn what_was_posted_before_a_refusal_succeeds_and_what_was_behind_it_is_flushed() {
    let mut pair = Pair::new(config());
    pair.ends[A].post(write(A, 1, 0, 8, None));
    pair.ends[A].post(write(A, 2, PART - 7, 8, None));
    pair.ends[A].post(write(A, 3, 0, 8, None));
    pair.finish();
    let refused = Failure::Refused(NakCode::RemoteAccessError);
    let expected = [(1, Ok(())), (2, Err(refused)), (3, Err(Failure::Flushed))];
    assert_eq!(requests(&pair.ends[A]), expected);
    assert_eq!(pair.ends[B].pair.counters().resp_remote_access_errors, 1);
}

#[test]
fn messages_that_do_not_hold_together_are_refused() {
    let full: &[u8] = &[1; 256];
    let (key, start) = (KEYS[B], ADDRESSES[B]);
    let write_first = Packet {
        opcode: Opcode::WriteFirst,
        reth: reth(key, start, 600),
        payload: &[],
        ..packet(B, PSN)
    };
    let only = |opcode, payload| Packet {
        opcode,
        payload,
        ..packet(B, PSN)
    };
    let write_only = |length, payload| Packet {
        opcode: Opcode::WriteOnly,
        reth: reth(key, start, length),
        payload,
        ..packet(B, PSN)
    };
    let alone = [
        // In the middle without a beginning.
        only(Opcode::SendMiddle, full),
        only(Opcode::SendLast, full),
        only(Opcode::WriteMiddle, full),
        only(Opcode::WriteLast, full),
        // Of a wrong length.
        only(Opcode::SendFirst, &full[..252]),
        only(Opcode::SendOnly, &[1; 260]),
        write_first,
        write_only(9, &full[..8]),
        write_only(7, &full[..8]),
        write_only(0, &full[..8]),
        // Known and not served.
        only(Opcode::CompareSwap, &full[..28]),
        only(Opcode::FetchAdd, &full[..28]),
        only(Opcode::SendOnlyInvalidate, &full[..8]),
    ];
    for packet in alone {
        is_refused(&[packet], NakCode::InvalidRequest);
    }
}

#[test]
fn a_message_that_is_not_ended_lets_no_other_begin() {
    let full: &[u8] = &[0; 256];
    let begun = Packet {
        opcode: Opcode::WriteFirst,
        reth: reth(KEYS[B], ADDRESSES[B], 600),
        payload: full,
        ..packet(B, PSN)
    };
    let next = packet(B, PSN + 1);
    let wrong = [
        Packet {
            opcode: Opcode::SendOnly,
            ..next
        },
        Packet {
            opcode: Opcode::SendMiddle,
            payload: full,
            ..next
        },
        Packet {
            reth: reth(KEYS[B], ADDRESSES[B], 8),
            opcode: Opcode::ReadRequest,
            ..next
        },
        Packet { psn: PSN + 1, ..begun },
        // Too short, too long, longer than it said.
        Packet {
            opcode: Opcode::WriteLast,
            payload: full,
            ..next
        },
        Packet {
            opcode: Opcode::WriteMiddle,
            payload: &full[..8],
            ..next
        },
        Packet {
            opcode: Opcode::WriteLast,
            payload: &[],
            ..next
        },
    ];
    for second in wrong {
        is_refused(&[begun, second], NakCode::InvalidRequest);
    }
    let middle = Packet {
        opcode: Opcode::WriteMiddle,
        payload: full,
        ..next
    };
    let beyond = Packet { psn: PSN + 2, ..middle };
    is_refused(&[begun, middle, beyond], NakCode::InvalidRequest);
}

#[test]
fn a_send_longer_than_its_receive_is_refused() {
    for (posted, sent) in [(10, 11), (300, 301), (256, 600)] {
        let mut pair = Pair::new(config());
        pair.ends[B].receive(receive(1, posted));
        pair.ends[A].post(send(1, sent));
        let behind = RECEIVES + posted;
        pair.finish();
        let refused = Failure::Refused(NakCode::InvalidRequest);
        assert_eq!(requests(&pair.ends[A]), [(1, Err(refused))]);
        assert_eq!(receives(&pair.ends[B]), [(1, Err(Failure::Flushed))]);
        assert!(pair.ends[B].memory[behind..].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn more_reads_at_once_than_allowed_are_refused() {
    let mut pair = Pair::new(Config { reads: 2, ..config() });
    for turn in 0..5 {
        let request = Packet {
            opcode: Opcode::ReadRequest,
            reth: reth(KEYS[B], ADDRESSES[B], 8),
            ..packet(B, PSN + turn)
        };
        pair.deliver(&sealed(A, &request), false);
    }
    assert_eq!(pair.failures()[B], Some(Failure::RefusedPeer(NakCode::InvalidRequest)));
}

#[test]
fn a_flood_of_old_reads_leaves_room_for_new_ones() {
    let mut pair = Pair::new(Config { reads: 2, ..config() });
    let request = |psn| Packet {
        opcode: Opcode::ReadRequest,
        reth: reth(KEYS[B], ADDRESSES[B], 8),
        ..packet(B, psn)
    };
    pair.deliver(&sealed(A, &request(PSN)), false);
    for _ in 0..1_000 {
        pair.deliver(&sealed(A, &request(PSN)), false);
    }
    pair.deliver(&sealed(A, &request(PSN + 1)), false);
    assert_eq!(pair.failures()[B], None);
    let answers = pair.ends[B].transmit(pair.now);
    assert_eq!(answers.len(), 3);
}

#[test]
fn an_old_read_that_would_reach_beyond_what_is_executed_is_not_answered() {
    let mut pair = Pair::new(config());
    let request = |length| Packet {
        opcode: Opcode::ReadRequest,
        reth: reth(KEYS[B], ADDRESSES[B], length),
        ..packet(B, PSN)
    };
    for (length, answered) in [(256, 1), (257, 0), (256, 1)] {
        pair.deliver(&sealed(A, &request(length)), false);
        assert_eq!(pair.ends[B].transmit(pair.now).len(), answered, "{length} bytes");
    }
}

#[test]
fn answers_to_what_was_never_asked_are_counted_and_change_nothing() {
    let mut pair = Pair::new(config());
    pair.ends[A].post(write(A, 1, 0, 8, None));
    pair.ends[A].transmit(pair.now);
    let first = PSN;
    let acknowledgement = |syndrome| Some(wire::Acknowledgement { syndrome, msn: 0 });
    let codes = [
        Syndrome::Ack,
        Syndrome::RnrNak(0),
        Syndrome::Nak(NakCode::SequenceError),
        Syndrome::Nak(NakCode::RemoteAccessError),
    ];
    for syndrome in codes {
        for psn in [first + 1, first + 100, first + 0x7f_ffff] {
            let answer = Packet {
                opcode: Opcode::Acknowledge,
                acknowledgement: acknowledgement(syndrome),
                ..packet(A, psn)
            };
            pair.deliver(&sealed(B, &answer), false);
        }
    }
    // A response to a WRITE, and to nothing.
    for psn in [first, first + 1] {
        let response = Packet {
            opcode: Opcode::ReadResponseOnly,
            acknowledgement: acknowledgement(Syndrome::Ack),
            payload: &[1; 8],
            ..packet(A, psn)
        };
        pair.deliver(&sealed(B, &response), false);
    }
    // Of the past.
    let old = Packet {
        opcode: Opcode::Acknowledge,
        acknowledgement: acknowledgement(Syndrome::Nak(NakCode::RemoteAccessError)),
        ..packet(A, first - 1)
    };
    pair.deliver(&sealed(B, &old), false);
    assert_eq!(pair.ends[A].pair.counters().resp_false, 3 * 4 + 2);
    assert_eq!((pair.failures(), requests(&pair.ends[A])), ([None, None], Vec::new()));
}

#[test]
fn packets_for_another_pair_are_counted_and_nothing_else() {
    let stranger = Packet {
        destination: 0x33,
        ..packet(B, PSN)
    };
    let (syndromes, pair) = answers(&[stranger]);
    assert_eq!((syndromes, pair.ends[B].pair.counters().malformed), (Vec::new(), 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever comes, an end neither panics nor writes outside what its peer may reach.
    #[test]
    fn no_packets_write_where_they_may_not(
        packets in prop::collection::vec(
            (0..23usize, -2i32..4, any::<bool>(), -20i64..20_000, 0..700usize, 0..3usize, any::<u8>()), 1..20),
    ) {
        let opcodes: Vec<_> = (0..=u8::MAX).filter_map(Opcode::from_u8).collect();
        let mut pair = Pair::new(config());
        let end = &mut pair.ends[B];
        end.receive(ReceiveRequest { id: 1, offset: RECEIVES, length: 300 });
        end.receive(ReceiveRequest { id: 2, offset: RECEIVES + 300, length: 10 });
        end.post(SendRequest { offset: RECEIVES + 310, ..read(B, 1, 0, 300) });
        end.transmit(Timestamp(1));
        let mut psn = PSN;
        for (opcode, step, is_keyed, at, length, cut, syndrome) in packets {
            let opcode = opcodes[opcode];
            let shape = opcode.shape();
            psn = psn.wrapping_add_signed(step) & 0xff_ffff;
            let is_answer = matches!(shape.class, Class::Acknowledge | Class::ReadResponse);
            let key = if is_keyed { KEYS[B] } else { 5 };
            let payload = vec![0xee; [length, 256, length % 5 * 4][cut]];
            let packet = Packet {
                opcode,
                psn: if is_answer { 0xab_cdef + u32::from(syndrome) % 3 } else { psn },
                reth: shape.has_reth().then(|| reth(key, ADDRESSES[B].wrapping_add_signed(at), length).unwrap()),
                acknowledgement: shape.has_aeth().then(|| wire::Acknowledgement {
                    syndrome: Syndrome::from_u8(syndrome).unwrap_or(Syndrome::Ack),
                    msn: 0,
                }),
                immediate: shape.has_immediate.then_some(9),
                payload: &payload,
                ..packet(B, psn)
            };
            pair.deliver(&sealed(A, &packet), false);
            pair.now = pair.now + Duration(1_000);
            pair.ends[B].transmit(pair.now);
        }
        let memory = &pair.ends[B].memory;
        prop_assert!(memory[PART..RECEIVES].iter().all(|&byte| byte == 0));
        prop_assert!(memory[RECEIVES + 610..].iter().all(|&byte| byte == 0));
    }
}
