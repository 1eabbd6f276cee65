//! Heartbeats and test requests.

use super::*;

#[test]
fn silence_of_ours_is_broken_by_a_heartbeat() {
    let mut end = End::logged_on();
    end.now = end.now + Duration::from_secs(10);
    end.sends("news");
    end.receives("35=0|34=2|");
    let did = end.waits(Duration::from_secs(31));
    assert_eq!(did, ["30 s: 35=0|34=3|"]);
}

#[test]
fn a_test_request_is_answered_with_its_id() {
    let mut end = End::logged_on();
    assert_eq!(
        end.receives("35=1|34=2|112=are you there|"),
        ["35=0|34=2|112=are you there|"]
    );
    // One that comes early waits for its turn.
    assert_eq!(end.receives("35=1|34=4|112=x|"), ["35=2|34=3|7=3|16=0|"]);
    assert_eq!(end.receives("35=0|34=3|"), ["35=0|34=4|112=x|"]);
}

#[test]
fn a_silent_peer_is_asked_and_then_given_up() {
    let mut end = End::logged_on();
    let did = end.waits(Duration::from_secs(200));
    // No heartbeat while an answer is awaited.
    assert_eq!(
        did,
        [
            "30 s: 35=0|34=2|",
            "36 s: 35=1|34=3|112=TEST|",
            "72 s: close: PeerSilent: "
        ]
    );
    assert_eq!(end.session.poll_timeout(), None);
}

#[test]
fn a_peer_that_answers_is_kept_and_heartbeats_go_on() {
    let mut end = End::logged_on();
    end.waits(Duration::from_secs(36));
    assert!(end.receives("35=0|34=2|112=TEST|").is_empty());
    assert_eq!(
        end.waits(Duration::from_secs(37)),
        ["30 s: 35=0|34=4|", "36 s: 35=1|34=5|112=TEST|"]
    );
}

#[test]
fn any_message_counts_as_life() {
    let mut end = End::logged_on();
    for number in 2..10 {
        let did = end.waits(Duration::from_secs(35));
        assert!(did.iter().all(|what| what.contains("35=0|")), "{did:?}");
        end.receives(&format!("35=D|34={number}|11=x|"));
    }
    end.waits(Duration::from_secs(37));
    // A message that is too early too.
    end.receives("35=D|34=99|11=x|");
    assert!(
        end.waits(Duration::from_secs(35))
            .iter()
            .all(|what| !what.contains("close"))
    );
}

#[test]
fn an_interval_of_zero_means_no_heartbeats() {
    let mut end = End::new(Role::Acceptor, |_| ());
    end.connect();
    end.receives("35=A|34=1|98=0|108=0|");
    assert_eq!(end.session.poll_timeout(), None);
    assert!(end.waits(Duration::from_secs(10_000)).is_empty());
}
