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
        let down = LinkEvent::Down(unresumable(5, 10, 10));
        let told = |end: &End| end.events.contains(&down);
        turns_until(&mut initiator, &mut acceptor, |a, b| told(a) || told(b));
        if is_acceptor {
            // From now on it is refused before it is up.
            let refused = LinkEvent::Down(DownReason::Refused);
            turns_until(&mut initiator, &mut acceptor, |a, _| a.events.contains(&refused));
            let ups = acceptor.events.iter().filter(|&&event| event == LinkEvent::Up).count();
            assert_eq!(ups, 1);
        }
    }
}

#[test]
fn an_end_that_lost_what_it_had_sent_refuses_with_the_numbers() {
    let (mut initiator, mut acceptor) = End::pair();
    acceptor.link = TcpLink::new(&listen(), resume(5, 1)).unwrap();
    let address = acceptor.link.local_addr().unwrap();
    initiator.link = TcpLink::new(&connect(address), resume(1, 10)).unwrap();
    turns_until(&mut initiator, &mut acceptor, |a, _| !a.events.is_empty());
    assert_eq!(acceptor.events, [LinkEvent::Down(unresumable(10, 5, 5))]);
    assert_eq!(initiator.events, [LinkEvent::Down(DownReason::Refused)]);

    // On the initiator's side; there the acceptor believes to be up until the initiator hangs up.
    let (mut initiator, mut acceptor) = End::pair();
    acceptor.link = TcpLink::new(&listen(), resume(1, 10)).unwrap();
    let address = acceptor.link.local_addr().unwrap();
    initiator.link = TcpLink::new(&connect(address), resume(5, 1)).unwrap();
    turns_until(&mut initiator, &mut acceptor, |a, _| !a.events.is_empty());
    assert_eq!(initiator.events, [LinkEvent::Down(unresumable(10, 5, 5))]);
}

const fn resume(next_send: u64, next_receive: u64) -> Resume {
    Resume {
        next_send: SequenceNumber(next_send),
        next_receive: SequenceNumber(next_receive),
    }
}

const fn unresumable(wanted: u64, oldest: u64, next: u64) -> DownReason {
    DownReason::Unresumable {
        wanted: SequenceNumber(wanted),
        oldest: SequenceNumber(oldest),
        next: SequenceNumber(next),
    }
}
