//! What SEND and RDMA WRITE do where nothing goes wrong.

use super::*;
use crate::roce::wire::Opcode;

/// Lengths around what fits one packet of 256 bytes.
const LENGTHS: [usize; 9] = [0, 1, 3, 255, 256, 257, 512, 513, 5_000];

#[test]
fn a_send_arrives_in_the_receive_whatever_its_length() {
    for length in LENGTHS {
        let mut pair = Pair::new(config());
        let bytes = pair.ends[A].fill(OWN, length, 1);
        pair.ends[B].receive(receive(7, length));
        pair.ends[A].post(send(1, length));
        pair.finish();
        let received = Received {
            length,
            is_write: false,
            immediate: None,
        };
        assert_eq!(receives(&pair.ends[B]), [(7, Ok(received))]);
        assert_eq!(requests(&pair.ends[A]), [(1, Ok(()))]);
        assert_eq!(pair.ends[B].memory[RECEIVES..RECEIVES + length], bytes);
    }
}

#[test]
fn a_write_lands_where_it_was_sent_and_nowhere_else() {
    for length in LENGTHS {
        for immediate in [None, Some(0x0102_0304)] {
            let mut pair = Pair::new(config());
            let bytes = pair.ends[A].fill(OWN, length, 2);
            let mut expected = pair.ends[B].memory.clone();
            expected[100..100 + length].copy_from_slice(&bytes);
            pair.ends[B].receive(receive(7, 0));
            pair.ends[A].post(write(A, 1, 100, length, immediate));
            pair.finish();
            assert_eq!(pair.ends[B].memory, expected, "{length} bytes");
            let received = Received {
                length,
                is_write: true,
                immediate,
            };
            let told: Vec<_> = immediate.map(|_| (7, Ok(received))).into_iter().collect();
            assert_eq!(receives(&pair.ends[B]), told);
        }
    }
}

#[test]
fn messages_both_ways_come_in_the_order_of_posting() {
    let mut pair = Pair::new(config());
    for id in 0..40 {
        for index in [A, B] {
            pair.ends[index].receive(receive(id, 600));
            pair.ends[index].post(match id % 3 {
                0 => send(id, 300 + 5 * index),
                1 => write(index, id, 0, 600, Some(9)),
                _ => SendRequest {
                    operation: Operation::Send {
                        immediate: Some(id as u32),
                    },
                    ..send(id, 20)
                },
            });
        }
    }
    pair.finish();
    for end in &pair.ends {
        let told = receives(end);
        assert_eq!(told.len(), 40);
        for ((id, outcome), expected) in told.into_iter().zip(0u64..) {
            let received = outcome.unwrap();
            assert_eq!(id, expected);
            assert_eq!(received.is_write, id % 3 == 1);
            let immediate = [None, Some(9), Some(expected as u32)][(id % 3) as usize];
            assert_eq!(received.immediate, immediate);
        }
        let ids: Vec<_> = requests(end)
            .into_iter()
            .map(|(id, status)| (id, status.is_ok()))
            .collect();
        assert_eq!(ids, (0..40).map(|id| (id, true)).collect::<Vec<_>>());
    }
    assert_eq!(pair.ends[A].pair.counters().completer_retry_err, 0);
}

#[test]
fn only_what_is_signaled_is_told_and_its_places_come_back() {
    let mut pair = Pair::new(config());
    for turn in 0..10 {
        for id in 0..64 {
            let request = SendRequest {
                is_signaled: id % 16 == 15,
                ..write(A, turn * 64 + id, 0, 8, None)
            };
            pair.ends[A].post(request);
        }
        assert_eq!(pair.ends[A].pair.send_room(), 0);
        let regions = &pair.ends[A].regions;
        assert_eq!(pair.ends[A].pair.post_send(send(0, 1), regions), Err(PostError::Full));
        pair.finish();
        assert_eq!(pair.ends[A].pair.send_room(), 64);
    }
    assert_eq!(requests(&pair.ends[A]).len(), 40);
}

#[test]
fn an_acknowledgement_is_asked_for_with_every_so_manieth_message_and_comes_unasked_later() {
    let mut pair = Pair::new(config());
    for id in 0..17 {
        pair.ends[A].post(write(A, id, 0, 8, None));
        pair.settle();
    }
    assert_eq!(pair.opcodes(B), [Opcode::Acknowledge]);
    assert_eq!(requests(&pair.ends[A]).len(), 16);
    assert!(pair.wait());
    assert_eq!(pair.now, Timestamp(1_000_000) + config().ack_delay);
    pair.settle();
    assert_eq!(pair.opcodes(B), [Opcode::Acknowledge; 2]);
    assert_eq!(requests(&pair.ends[A]).len(), 17);
    assert!(!pair.wait(), "nothing is left to do");
}

#[test]
fn a_request_goes_before_an_answer_that_waits_too() {
    let mut pair = Pair::new(Config {
        ack_every: 1,
        ..config()
    });
    pair.ends[A].post(write(A, 1, 0, 8, None));
    let asked = pair.ends[A].transmit(pair.now).remove(0);
    pair.deliver(&Sent { from: A, bytes: asked }, false);
    pair.ends[B].post(write(B, 1, 0, 8, None));
    pair.settle();
    assert_eq!(pair.opcodes(B)[..2], [Opcode::WriteOnly, Opcode::Acknowledge]);
}

#[test]
fn an_answer_is_not_put_off_for_ever() {
    let mut pair = Pair::new(Config {
        ack_every: 1,
        ..config()
    });
    pair.ends[A].post(write(A, 1, 0, 8, None));
    let asked = pair.ends[A].transmit(pair.now).remove(0);
    pair.deliver(&Sent { from: A, bytes: asked }, false);
    for id in 0..40 {
        pair.ends[B].post(write(B, id, 0, 8, None));
    }
    pair.settle();
    let place = pair.opcodes(B).iter().position(|&opcode| opcode == Opcode::Acknowledge);
    assert_eq!(place, Some(16));
}

#[test]
fn what_cannot_be_posted_is_named() {
    let end = &mut Pair::new(Config { reads: 0, ..config() }).ends[A];
    let mut post = |request| end.pair.post_send(request, &end.regions);
    assert_eq!(post(send(1, PART + 1)), Err(PostError::TooLong));
    let outside = SendRequest {
        offset: ARENA,
        ..send(1, 1)
    };
    assert_eq!(post(outside), Err(PostError::Bounds));
    assert_eq!(post(read(A, 1, 0, 1)), Err(PostError::NoReads));
    let outside = ReceiveRequest {
        offset: ARENA - 1,
        ..receive(1, 2)
    };
    assert_eq!(end.pair.post_receive(outside, &end.regions), Err(PostError::Bounds));
    let mut idle = QueuePair::new(config()).unwrap();
    assert_eq!(idle.post_send(send(1, 1), &end.regions), Err(PostError::NotConnected));
}
