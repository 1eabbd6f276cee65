//! A peer that lost acknowledged messages with its machine, and one that this end cannot serve.

use super::*;

/// A pair that is up, of which each end has received 200 messages.
fn far_on() -> (End, End) {
    let (mut initiator, mut acceptor) = up_pair();
    for number in 0..200_u8 {
        for end in [&mut initiator, &mut acceptor] {
            end.send(&[number; 8]);
            end.sync();
        }
        let count = usize::from(number) + 1;
        let is_room = |a: &End, b: &End| a.link.room() > 0 && b.link.room() > 0;
        turns_until(&mut initiator, &mut acceptor, |a, b| {
            a.received.len() == count && b.received.len() == count && is_room(a, b)
        });
    }
    (initiator, acceptor)
}

#[test]
fn what_either_end_lost_comes_again_from_the_journal_and_then_what_is_new() {
    let (mut initiator, mut acceptor) = far_on();
    let address = acceptor.link.local_addr().unwrap();
    initiator.received_synced = 11;
    initiator.restart_elsewhere(&connect(address));
    acceptor.send(b"new");
    acceptor.sync();
    turns_until(&mut initiator, &mut acceptor, |a, _| a.received.len() == 201);
    assert_eq!(initiator.received, acceptor.sent);

    acceptor.received_synced = 11;
    acceptor.restart_elsewhere(&listen());
    let address = acceptor.link.local_addr().unwrap();
    initiator.restart(&connect(address));
    // What it put back of its last window fills the ring until it is connected.
    turns_until(&mut initiator, &mut acceptor, |a, _| {
        a.link.is_up() && a.link.room() == WINDOW
    });
    initiator.send(b"new");
    initiator.sync();
    turns_until(&mut initiator, &mut acceptor, |_, b| b.received.len() == 201);
    assert_eq!(acceptor.received, initiator.sent);
}

#[test]
fn a_peer_that_wants_what_the_journal_does_not_have_is_refused_with_the_numbers() {
    for is_acceptor in [true, false] {
        let (mut initiator, mut acceptor) = End::pair();
        // The one has sent nine messages and has none of them, the other has received four.
        let (holder, wanting) = if is_acceptor {
            (resume(10, 1), resume(1, 5))
        } else {
            (resume(1, 5), resume(10, 1))
        };
        acceptor.link = TcpLink::new(&listen(), holder).unwrap();
        let address = acceptor.link.local_addr().unwrap();
        initiator.link = TcpLink::new(&connect(address), wanting).unwrap();
        (initiator.recalls, acceptor.recalls) = (None, None);
        let gone = Refusal::MessagesGone {
            wanted: SequenceNumber(5),
            oldest: SequenceNumber(10),
        };
        let (here, there) = told(gone);
        if is_acceptor {
            turns_until(&mut initiator, &mut acceptor, |a, b| {
                a.events.contains(&there) && b.events.contains(&here)
            });
            // From now on it is refused before it is up.
            let refused = |end: &End| end.link.counters().refused > 2;
            turns_until(&mut initiator, &mut acceptor, |_, b| refused(b));
            let ups = acceptor.events.iter().filter(|&&event| event == LinkEvent::Up).count();
            assert_eq!(ups, 1);
        } else {
            turns_until(&mut initiator, &mut acceptor, |a, b| {
                a.events.contains(&here) && b.events.contains(&there)
            });
        }
    }
}

#[test]
fn an_end_that_lost_what_it_had_sent_refuses_with_the_numbers_and_its_peer_hears_them() {
    let ahead = Refusal::NumbersAhead {
        wanted: SequenceNumber(10),
        next: SequenceNumber(5),
    };
    let (here, there) = told(ahead);
    let (mut initiator, mut acceptor) = End::pair();
    acceptor.link = TcpLink::new(&listen(), resume(5, 1)).unwrap();
    let address = acceptor.link.local_addr().unwrap();
    initiator.link = TcpLink::new(&connect(address), resume(1, 10)).unwrap();
    turns_until(&mut initiator, &mut acceptor, |a, _| !a.events.is_empty());
    assert_eq!(acceptor.events, [here]);
    assert_eq!(initiator.events, [there]);

    // On the initiator's side, which has the last word: the acceptor is not up before it.
    let (mut initiator, mut acceptor) = End::pair();
    acceptor.link = TcpLink::new(&listen(), resume(1, 10)).unwrap();
    let address = acceptor.link.local_addr().unwrap();
    initiator.link = TcpLink::new(&connect(address), resume(5, 1)).unwrap();
    turns_until(&mut initiator, &mut acceptor, |_, b| !b.events.is_empty());
    assert_eq!(initiator.events, [here]);
    assert_eq!(acceptor.events, [there]);
    assert_eq!(acceptor.link.counters().refused_by_peer, 1);
}

#[test]
fn an_initiator_that_refuses_comes_again_at_growing_intervals_and_its_peer_is_never_up() {
    let (mut initiator, mut acceptor) = End::pair();
    acceptor.link = TcpLink::new(&listen(), resume(1, 10)).unwrap();
    let address = acceptor.link.local_addr().unwrap();
    initiator.link = TcpLink::new(&connect(address), resume(5, 1)).unwrap();
    let mut since = Vec::new();
    for count in 1..=16 {
        let begun = initiator.now;
        let refused = |end: &End| end.link.counters().refused_by_peer == count;
        turns_until(&mut initiator, &mut acceptor, |_, b| refused(b));
        since.push(initiator.now.since(begun).0 / 1_000_000);
    }
    assert!(since.windows(2).skip(1).all(|pair| pair[1] + 2 >= pair[0]), "{since:?}");
    let last = 5_000..5_100;
    assert!(last.contains(&since[14]) && last.contains(&since[15]), "{since:?}");
    assert_eq!(acceptor.link.counters().ups, 0);
    // Told once.
    assert_eq!(acceptor.events.len(), 1);
}

/// A peer that hangs up with bytes unread resets the connection, and a send finds that out before the next receive.
#[test]
fn the_reason_is_heard_also_by_an_end_whose_send_fails_first() {
    let mut acceptor = End::new(&listen());
    let mut raw = Raw::log_in(&mut acceptor);
    let refusal = Refusal::Parameters;
    let mut packet = [0; MAX_PACKET_LENGTH];
    let length = write_refusal(refusal, &mut packet);
    raw.write(&packet[..length]);
    drop(raw);
    for _ in 0..WINDOW {
        acceptor.send(b"report");
        acceptor.sync();
        acceptor.link.flush(acceptor.now, WINDOW as u64);
        if acceptor.link.failed.is_some() {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(acceptor.link.failed, Some(DownReason::Closed));
    assert_eq!(down_reason(&mut acceptor), DownReason::RefusedBecause(refusal));
}

/// What this end is told of its refusal, and the other.
const fn told(refusal: Refusal) -> (LinkEvent, LinkEvent) {
    (
        LinkEvent::Down(DownReason::Incompatible(refusal)),
        LinkEvent::Down(DownReason::RefusedBecause(refusal)),
    )
}

const fn resume(next_send: u64, next_receive: u64) -> Resume {
    Resume {
        next_send: SequenceNumber(next_send),
        next_receive: SequenceNumber(next_receive),
    }
}
