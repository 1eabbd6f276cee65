//! What a resend request is answered with.

use super::*;
use crate::fix::MAX_MESSAGE_LENGTH;

const SENT: &str = "20260301-00:00:00.000";

/// A session that has sent: 1 Logon, 2 and 3 news, 4 and 5 heartbeats, 6 news, 7 a heartbeat.
fn with_history() -> End {
    let mut end = End::logged_on();
    end.sends("two");
    end.sends("three");
    end.receives("35=1|34=2|112=x|");
    end.receives("35=1|34=3|112=y|");
    end.sends("six");
    end.receives("35=1|34=4|112=z|");
    assert_eq!(end.numbers(), (5, 8));
    end.now = end.now + Duration::from_secs(5);
    end
}

const LATER: &str = "20260301-00:00:05.000";

#[test]
fn applications_are_sent_again_and_others_become_one_gap_fill_a_run() {
    let mut end = with_history();
    assert_eq!(
        end.receives("35=2|34=5|7=1|16=0|"),
        [
            format!("35=4|34=1|43=Y|122={LATER}|36=2|123=Y|"),
            format!("35=B|34=2|43=Y|122={SENT}|58=two|"),
            format!("35=B|34=3|43=Y|122={SENT}|58=three|"),
            format!("35=4|34=4|43=Y|122={LATER}|36=6|123=Y|"),
            format!("35=B|34=6|43=Y|122={SENT}|58=six|"),
            format!("35=4|34=7|43=Y|122={LATER}|36=8|123=Y|"),
        ]
    );
    assert_eq!(end.session.counters().resent, 3);
    assert_eq!(end.numbers(), (6, 8));
}

#[test]
fn a_resend_stops_where_it_was_asked_to() {
    for (asked, expected) in [
        ("7=2|16=2|", &["34=2"][..]),
        (
            "7=2|16=4|",
            &["34=2", "34=3", "34=4|43=Y|122=20260301-00:00:05.000|36=5|"],
        ),
        ("7=4|16=4|", &["34=4|43=Y|122=20260301-00:00:05.000|36=5|"]),
        ("7=6|16=7|", &["34=6", "34=7|43=Y|122=20260301-00:00:05.000|36=8|"]),
        ("7=6|16=999999|", &["34=6", "34=7|43=Y|122=20260301-00:00:05.000|36=8|"]),
    ] {
        let mut end = with_history();
        let did = end.receives(&format!("35=2|34=5|{asked}"));
        assert_eq!(did.len(), expected.len(), "{asked}: {did:?}");
        for (message, part) in did.iter().zip(expected) {
            assert!(message.contains(part), "{asked}: {did:?}");
        }
    }
}

#[test]
fn a_resend_differs_from_the_first_in_header_only() {
    let mut end = End::logged_on();
    let reject_text = "58=Required tag missing|371=112|372=1|373=1|";
    assert_eq!(end.receives("35=1|34=2|"), [format!("35=3|34=2|45=2|{reject_text}")]);
    assert_eq!(
        end.receives("35=2|34=3|7=2|16=2|"),
        [format!("35=3|34=2|43=Y|122={SENT}|45=2|{reject_text}")]
    );
}

#[test]
fn a_resend_request_that_comes_early_is_answered_before_the_gap_is_asked_for() {
    let mut end = with_history();
    let did = end.receives("35=2|34=9|7=6|16=0|");
    assert_eq!(
        did,
        [
            format!("35=B|34=6|43=Y|122={SENT}|58=six|"),
            format!("35=4|34=7|43=Y|122={LATER}|36=8|123=Y|"),
            "35=2|34=8|7=5|16=0|".to_string(),
        ]
    );
}

#[test]
fn what_is_no_longer_held_becomes_a_gap_fill_and_is_counted() {
    let mut end = End::new(Role::Acceptor, |config| {
        config.store_messages = 4;
        config.store_bytes = MAX_MESSAGE_LENGTH;
    });
    end.connect();
    end.receives("35=A|34=1|98=0|108=30|");
    for number in 2..=8 {
        end.sends(&format!("{number}"));
    }
    assert_eq!(
        end.receives("35=2|34=2|7=1|16=0|"),
        [
            format!("35=4|34=1|43=Y|122={SENT}|36=5|123=Y|"),
            format!("35=B|34=5|43=Y|122={SENT}|58=5|"),
            format!("35=B|34=6|43=Y|122={SENT}|58=6|"),
            format!("35=B|34=7|43=Y|122={SENT}|58=7|"),
            format!("35=B|34=8|43=Y|122={SENT}|58=8|"),
        ]
    );
    assert_eq!(end.session.counters().lost, 4);
}

#[test]
fn live_messages_wait_for_a_replay_and_keep_their_order() {
    let mut end = End::logged_on();
    for number in 2..=200 {
        end.sends(&format!("{number}"));
    }
    let mut did = end.receives("35=2|34=2|7=1|16=0|");
    assert!(did.len() < 100, "a replay is sent in parts");
    // While it goes on: a live message, and a test request to be answered.
    assert!(end.sends("201").is_empty());
    did.extend(end.receives("35=1|34=3|112=x|"));
    while end.session.poll_timeout().is_some_and(|due| due <= end.now) {
        end.session.on_timer(end.now, &mut end.did);
        did.extend(end.done());
    }
    let numbers: Vec<&str> = did.iter().map(|message| message.split('|').nth(1).unwrap()).collect();
    let expected: Vec<String> = (1..=202).map(|number| format!("34={number}")).collect();
    assert_eq!(numbers, expected);
    // The live ones come for the first time, as they would have.
    assert_eq!(did[200], "35=B|34=201|58=201|");
    assert_eq!(did[201], "35=0|34=202|112=x|");
    assert_eq!(end.sends("203"), ["35=B|34=203|58=203|"]);
}

#[test]
fn a_request_during_a_replay_starts_it_anew() {
    let mut end = End::logged_on();
    for number in 2..=200 {
        end.sends(&format!("{number}"));
    }
    end.receives("35=2|34=2|7=1|16=0|");
    let did = end.receives("35=2|34=3|7=199|16=0|");
    assert_eq!(did.len(), 2);
    assert!(did[1].contains("|34=200|"));
}

#[test]
fn what_is_sent_while_nobody_is_logged_on_is_there_to_be_asked_for() {
    let mut end = End::logged_on();
    end.drop_connection();
    assert!(end.sends("one").is_empty());
    end.connect();
    assert!(end.sends("two").is_empty());
    assert_eq!(
        end.receives("35=A|34=2|98=0|108=30|"),
        ["35=A|34=4|98=0|108=30|", "logged on"]
    );
    assert_eq!(
        end.receives("35=2|34=3|7=2|16=0|"),
        [
            format!("35=B|34=2|43=Y|122={SENT}|58=one|"),
            format!("35=B|34=3|43=Y|122={SENT}|58=two|"),
            format!("35=4|34=4|43=Y|122={SENT}|36=5|123=Y|"),
        ]
    );
}

#[test]
fn a_lost_connection_ends_a_replay() {
    let mut end = End::logged_on();
    for number in 2..=200 {
        end.sends(&format!("{number}"));
    }
    end.receives("35=2|34=2|7=1|16=0|");
    end.drop_connection();
    assert_eq!(end.session.poll_timeout(), None);
    end.connect();
    assert_eq!(
        end.receives("35=A|34=3|98=0|108=30|"),
        ["35=A|34=201|98=0|108=30|", "logged on"]
    );
}

/// A session that keeps three messages, with an owner that keeps all: 1 Logon, 2 to 5 news, 6 and 7 heartbeats, 8 and 9
/// news.
fn with_journal() -> End {
    let mut end = End::new(Role::Acceptor, |config| config.store_messages = 2);
    end.did.recalls = Some(Vec::new());
    end.connect();
    end.receives("35=A|34=1|98=0|108=30|");
    for number in 2..=5 {
        end.sends(&format!("{number}"));
    }
    end.receives("35=1|34=2|112=x|");
    end.receives("35=1|34=3|112=y|");
    end.sends("8");
    end.sends("9");
    end.now = end.now + Duration::from_secs(5);
    end
}

#[test]
fn what_is_no_longer_held_is_recalled_and_sent_again() {
    let mut end = with_journal();
    assert_eq!(end.receives("35=2|34=4|7=1|16=0|"), ["recall 1 to 7"]);
    // Meanwhile nothing overtakes it.
    assert!(end.sends("10").is_empty());
    assert!(end.waits(Duration::from_secs(29)).is_empty());
    let later = "20260301-00:00:34.000";
    assert_eq!(
        end.finds(true),
        [
            format!("35=4|34=1|43=Y|122={later}|36=2|123=Y|"),
            format!("35=B|34=2|43=Y|122={SENT}|58=2|"),
            format!("35=B|34=3|43=Y|122={SENT}|58=3|"),
            format!("35=B|34=4|43=Y|122={SENT}|58=4|"),
            format!("35=B|34=5|43=Y|122={SENT}|58=5|"),
            // The store has lost number 8 since, and number 9 is found in it.
            "recall 8 to 8".to_string(),
        ]
    );
    assert_eq!(
        end.finds(true),
        [
            format!("35=4|34=6|43=Y|122={later}|36=8|123=Y|"),
            format!("35=B|34=8|43=Y|122={SENT}|58=8|"),
            format!("35=B|34=9|43=Y|122={SENT}|58=9|"),
            "35=B|34=10|58=10|".to_string(),
        ]
    );
    assert_eq!((end.session.counters().lost, end.session.counters().resent), (0, 6));
}

#[test]
fn what_is_not_found_becomes_a_gap_fill_and_is_counted() {
    let mut end = with_journal();
    end.receives("35=2|34=4|7=1|16=0|");
    assert_eq!(
        end.finds(false),
        [
            format!("35=4|34=1|43=Y|122={LATER}|36=8|123=Y|"),
            format!("35=B|34=8|43=Y|122={SENT}|58=8|"),
            format!("35=B|34=9|43=Y|122={SENT}|58=9|"),
        ]
    );
    assert_eq!(end.session.counters().lost, 7);
}

#[test]
fn numbers_that_an_owner_passes_over_were_not_found() {
    let mut end = with_journal();
    end.receives("35=2|34=4|7=2|16=5|");
    let recall = end.did.recalls.as_ref().unwrap()[0].id;
    let four = end.did.journal[3].clone();
    let (session, did) = (&mut end.session, &mut end.did);
    session.on_recalled(end.now, recall, SequenceNumber(4), Some(&four), did);
    session.on_recalled(end.now, recall, SequenceNumber(5), None, did);
    assert_eq!(
        end.done(),
        [
            "recall 2 to 5".to_string(),
            format!("35=4|34=2|43=Y|122={LATER}|36=4|123=Y|"),
            format!("35=B|34=4|43=Y|122={SENT}|58=4|"),
            format!("35=4|34=5|43=Y|122={LATER}|36=6|123=Y|"),
        ][1..]
    );
    assert_eq!(end.session.counters().lost, 3);
}

#[test]
fn what_comes_for_an_older_recall_is_not_used() {
    let mut end = with_journal();
    end.receives("35=2|34=4|7=2|16=0|");
    let old = end.did.recalls.replace(Vec::new()).unwrap()[0].id;
    assert_eq!(end.receives("35=2|34=5|7=4|16=0|"), ["recall 4 to 7"]);
    let four = end.did.journal[3].clone();
    for (recall, number) in [(old, 4), (old, 2), (old + 1, 2), (old + 1, 99)] {
        end.session
            .on_recalled(end.now, recall, SequenceNumber(number), Some(&four), &mut end.did);
        assert!(end.done().is_empty());
    }
    end.drop_connection();
    end.session
        .on_recalled(end.now, old + 1, SequenceNumber(4), Some(&four), &mut end.did);
    assert!(end.done().is_empty());
}

#[test]
fn what_waited_longer_than_the_store_held_it_is_recalled_and_sent_as_it_would_have_been() {
    let mut end = with_journal();
    end.receives("35=2|34=4|7=2|16=2|");
    for number in 10..=13 {
        assert!(end.sends(&format!("{number}")).is_empty());
    }
    end.now = end.now + SECOND;
    let did = end.finds(true);
    assert_eq!(
        did,
        [
            format!("35=B|34=2|43=Y|122={SENT}|58=2|"),
            "recall 10 to 11".to_string()
        ]
    );
    assert_eq!(
        end.finds(true),
        [
            "35=B|34=10|58=10|",
            "35=B|34=11|58=11|",
            "35=B|34=12|58=12|",
            "35=B|34=13|58=13|"
        ]
    );
}
