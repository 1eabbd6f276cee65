//! Sequence numbers of what comes in, and what is wrong with a message.

use super::*;

#[test]
fn an_expected_message_reaches_the_order_logic() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=D|34=2|11=x|55=y|"), ["application 2: 11=x|55=y|"]);
    assert_eq!(end.numbers(), (3, 2));
}

#[test]
fn a_gap_is_asked_for_once_and_what_comes_early_waits_for_its_turn() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=D|34=4|11=c|"), ["35=2|34=2|7=2|16=0|"]);
    assert!(end.receives("35=1|34=5|112=x|").is_empty());
    assert!(end.receives("35=D|34=6|11=d|").is_empty());
    assert_eq!(
        end.receives("35=D|34=2|43=Y|122=20260301-00:00:00|11=a|"),
        ["application 2: 11=a|"]
    );
    assert_eq!(
        end.receives("35=D|34=3|43=Y|122=20260301-00:00:00|11=b|"),
        [
            "application 3: 11=b|",
            "application 4: 11=c|",
            "35=0|34=3|112=x|",
            "application 6: 11=d|"
        ]
    );
    // They come again, as they were asked for, and were seen.
    assert!(end.receives("35=D|34=4|43=Y|122=20260301-00:00:00|11=c|").is_empty());
    assert!(end.receives("35=4|34=5|43=Y|36=6|123=Y|").is_empty());
    assert_eq!(end.receives("35=D|34=7|11=e|"), ["application 7: 11=e|"]);
    assert_eq!(end.session.counters().resend_requests, 1);
    assert_eq!(end.session.counters().early, 3);
    assert_eq!(end.session.counters().early_dropped, 0);
}

#[test]
fn what_comes_early_and_finds_no_room_comes_again() {
    let mut end = End::new(Role::Acceptor, |config| config.early_bytes = 100);
    end.connect();
    end.receives("35=A|34=1|98=0|108=30|");
    end.receives("35=D|34=3|11=b|");
    end.receives("35=D|34=4|11=c|");
    assert_eq!(end.session.counters().early_dropped, 1);
    let again = |number, id| format!("35=D|34={number}|43=Y|122=20260301-00:00:00|11={id}|");
    assert_eq!(
        end.receives(&again(2, "a")),
        ["application 2: 11=a|", "application 3: 11=b|"]
    );
    assert!(end.receives(&again(3, "b")).is_empty());
    assert_eq!(end.receives(&again(4, "c")), ["application 4: 11=c|"]);
    assert_eq!(end.session.counters().resend_requests, 1);
}

#[test]
fn what_a_gap_fill_passes_over_is_not_handled() {
    let mut end = End::logged_on();
    end.receives("35=D|34=4|11=stale|");
    end.receives("35=D|34=5|11=e|");
    assert_eq!(end.receives("35=4|34=2|43=Y|36=5|123=Y|"), ["application 5: 11=e|"]);
    assert_eq!(end.numbers().0, 6);
}

#[test]
fn a_gap_fill_that_comes_early_waits_too() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=4|34=3|36=20|123=Y|"), ["35=2|34=2|7=2|16=0|"]);
    assert_eq!(end.numbers().0, 2);
    assert_eq!(end.receives("35=D|34=2|11=a|"), ["application 2: 11=a|"]);
    assert_eq!(end.numbers().0, 20);
}

#[test]
fn a_message_that_waited_is_rejected_in_its_turn() {
    for (early, kind, tag) in [("35=1|34=3|", 1, 112), ("35=2|34=3|7=1|", 2, 16)] {
        let mut end = End::logged_on();
        assert_eq!(end.receives(early), ["35=2|34=2|7=2|16=0|"]);
        assert_eq!(
            end.receives("35=D|34=2|11=a|"),
            [
                "application 2: 11=a|".to_string(),
                format!("35=3|34=3|45=3|58=Required tag missing|371={tag}|372={kind}|373=1|")
            ]
        );
    }
}

#[test]
fn waiting_longer_than_clocks_may_differ_is_no_fault() {
    let mut end = End::logged_on();
    end.receives("35=D|34=3|11=b|");
    end.now = end.now + Duration::from_secs(300);
    assert_eq!(
        end.receives("35=D|34=2|11=a|"),
        ["application 2: 11=a|", "application 3: 11=b|"]
    );
}

#[test]
fn a_gap_is_asked_for_in_chunks_where_the_config_says_so() {
    let mut end = End::new(Role::Acceptor, |config| config.resend_chunk = 3);
    end.connect();
    end.receives("35=A|34=1|98=0|108=30|");
    assert_eq!(end.receives("35=D|34=9|11=x|"), ["35=2|34=2|7=2|16=4|"]);
    let again = |number| format!("35=D|34={number}|43=Y|122=20260301-00:00:00|11=x|");
    for number in 2..=3 {
        assert_eq!(end.receives(&again(number)).len(), 1);
    }
    assert_eq!(end.receives(&again(4)), ["35=2|34=3|7=5|16=7|", "application 4: 11=x|"]);
    // The last part is asked for with all that followed.
    assert_eq!(end.receives("35=4|34=5|43=Y|36=8|123=Y|"), ["35=2|34=4|7=8|16=0|"]);
    assert_eq!(
        end.receives(&again(8)),
        ["application 8: 11=x|", "application 9: 11=x|"]
    );
    assert_eq!(end.session.counters().resend_requests, 3);
}

#[test]
fn before_4_2_all_there_are_ends_in_999999() {
    for version in [Version::Fix40, Version::Fix41] {
        let mut end = End::new(Role::Acceptor, |config| config.versions = alloc::vec![version]);
        end.connect();
        end.receives("35=A|34=1|98=0|108=30|");
        end.sends("two");
        assert_eq!(end.receives("35=0|34=3|"), ["35=2|34=3|7=2|16=999999|"]);
        assert_eq!(
            end.receives("35=2|34=2|7=2|16=999999|"),
            [
                "35=B|34=2|43=Y|122=20260301-00:00:00|58=two|",
                "35=4|34=3|43=Y|122=20260301-00:00:00|36=4|123=Y|"
            ]
        );
    }
}

#[test]
fn a_gap_that_stays_is_asked_for_again() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=D|34=4|11=c|").len(), 1);
    end.now = end.now + Duration::from_secs(29);
    assert!(end.receives("35=D|34=5|11=d|").is_empty());
    end.now = end.now + SECOND;
    assert_eq!(end.receives("35=D|34=6|11=e|"), ["35=2|34=3|7=2|16=0|"]);
}

#[test]
fn a_second_gap_is_asked_for() {
    let mut end = End::logged_on();
    end.receives("35=D|34=3|11=b|");
    end.receives("35=4|34=2|43=Y|36=4|123=Y|");
    assert_eq!(end.receives("35=D|34=6|11=c|"), ["35=2|34=3|7=4|16=0|"]);
}

#[test]
fn a_number_that_is_too_low_ends_the_session() {
    let mut end = End::logged_on();
    end.receives("35=0|34=2|");
    let text = "MsgSeqNum too low, expecting 3 but received 2";
    assert_eq!(
        end.receives("35=D|34=2|11=x|"),
        [
            format!("35=5|34=2|58={text}|"),
            format!("close: SequenceTooLow: {text}")
        ]
    );
    assert_eq!(end.numbers(), (3, 3));
    assert!(end.receives("35=D|34=3|11=x|").is_empty());
}

#[test]
fn a_possible_duplicate_that_was_seen_is_dropped() {
    let mut end = End::logged_on();
    end.receives("35=D|34=2|11=x|");
    assert!(end.receives("35=D|34=2|43=Y|122=20260301-00:00:00|11=x|").is_empty());
    assert_eq!(end.numbers(), (3, 2));
    assert_eq!(end.session.counters().duplicates, 1);
}

#[test]
fn a_possible_duplicate_must_say_when_it_was_first_sent() {
    for number in [2, 3] {
        let mut end = End::logged_on();
        end.receives("35=D|34=2|11=x|");
        assert_eq!(
            end.receives(&format!("35=D|34={number}|43=Y|11=x|")),
            [format!(
                "35=3|34=2|45={number}|58=Required tag missing|371=122|372=D|373=1|"
            )]
        );
        assert!(end.session.is_logged_on());
        assert_eq!(end.numbers().0, number + 1);
    }
}

#[test]
fn a_possible_duplicate_from_the_future_ends_the_session() {
    let mut end = End::logged_on();
    end.receives("35=D|34=2|11=x|");
    let text = "SendingTime accuracy problem";
    assert_eq!(
        end.receives("35=D|34=2|43=Y|122=20260301-00:00:01|11=x|"),
        [
            format!("35=3|34=2|45=2|58={text}|372=D|373=10|"),
            "35=5|34=3|".to_string(),
        ]
    );
}

#[test]
fn a_resend_request_is_answered_whatever_its_number() {
    let mut end = End::logged_on();
    end.receives("35=0|34=2|");
    let answer = ["35=4|34=1|43=Y|122=20260301-00:00:00.000|36=2|123=Y|"];
    assert_eq!(end.receives("35=2|34=2|7=1|16=0|"), answer);
    assert_eq!(end.numbers().0, 3);
    // Not when it was seen.
    assert!(
        end.receives("35=2|34=2|43=Y|122=20260301-00:00:00|7=1|16=0|")
            .is_empty()
    );
    // One that is early is answered when it comes, and not again in its turn.
    assert_eq!(end.receives("35=2|34=4|7=1|16=0|"), [answer[0], "35=2|34=2|7=3|16=0|"]);
    assert_eq!(end.receives("35=D|34=3|11=x|"), ["application 3: 11=x|"]);
    assert_eq!(end.numbers().0, 5);
}

#[test]
fn a_reject_goes_back_the_way_that_its_message_came() {
    for (there, back) in [
        ("115=A|", "128=A|"),
        ("128=A|", "115=A|"),
        ("115=A|116=B|144=C|", "128=A|129=B|145=C|"),
        ("128=A|129=B|145=C|", "115=A|116=B|144=C|"),
    ] {
        let mut end = End::logged_on();
        let rejected = end.receives(&format!("35=1|34=2|{there}"));
        assert_eq!(
            rejected,
            [format!(
                "35=3|34=2|{back}45=2|58=Required tag missing|371=112|372=1|373=1|"
            )]
        );
        // Also when it is sent again.
        assert_eq!(
            end.receives("35=2|34=3|7=2|16=2|"),
            [format!(
                "35=3|34=2|43=Y|122=20260301-00:00:00.000|{back}45=2|58=Required tag missing|371=112|372=1|373=1|"
            )]
        );
    }
}

#[test]
fn before_4_2_a_reject_has_its_number_and_text_only() {
    let mut end = End::new(Role::Acceptor, |config| config.versions = alloc::vec![Version::Fix41]);
    end.connect();
    end.receives("35=A|34=1|98=0|108=30|");
    assert_eq!(
        end.receives("35=1|34=2|"),
        ["35=3|34=2|45=2|58=Required tag missing (112)|"]
    );
}

#[test]
fn a_possible_resend_is_told_to_the_order_logic() {
    let mut end = End::logged_on();
    let bytes = wire("35=D|34=2|97=Y|11=x|", Version::Fix44, end.now);
    let mut scratch = Scratch::new();
    let application = end.session.on_frame(end.now, &bytes, &mut scratch, &mut end.did);
    assert!(application.unwrap().message.poss_resend());
}

#[test]
fn a_wrong_comp_id_is_rejected_and_ends_the_session() {
    for field in ["49=OTHER", "56=OTHER"] {
        let mut end = End::logged_on();
        assert_eq!(
            end.receives(&format!("35=D|34=2|{field}|11=x|")),
            ["35=3|34=2|45=2|58=CompID problem|372=D|373=9|", "35=5|34=3|"]
        );
        assert_eq!(end.numbers(), (3, 4));
    }
}

#[test]
fn a_sending_time_out_of_tolerance_is_rejected_and_ends_the_session() {
    let text = "SendingTime accuracy problem";
    for time in ["20260228-23:57:59.999", "20260301-00:02:00.001"] {
        let mut end = End::logged_on();
        assert_eq!(
            end.receives(&format!("35=D|34=2|52={time}|11=x|")),
            [
                format!("35=3|34=2|45=2|58={text}|372=D|373=10|"),
                "35=5|34=3|".to_string(),
            ]
        );
    }
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=D|34=2|52=20260301-00:02:00|11=x|").len(), 1);
}

#[test]
fn another_version_ends_the_session() {
    let mut end = End::logged_on();
    assert_eq!(
        end.receives("8=FIX.4.2|35=D|34=2|11=x|"),
        ["35=5|34=2|58=Incorrect BeginString|"]
    );
    assert_eq!(end.numbers().0, 2);
}

#[test]
fn a_message_without_a_number_ends_the_session() {
    for message in ["35=D|11=x|", "35=D|34=0|11=x|", "35=D|34=99999999999999999|11=x|"] {
        let mut end = End::logged_on();
        let did = end.receives(message);
        assert_eq!(did[1], "close: SequenceMissing: MsgSeqNum missing or not valid");
        assert_eq!(end.numbers().0, 2);
    }
}

#[test]
fn a_header_that_breaks_a_rule_is_rejected_and_uses_its_number_up() {
    for (message, tag, reason, text) in [
        ("35=D|34=2|-52|11=x|", "371=52|", 1, "Required tag missing"),
        ("35=D|34=2|-49|11=x|", "371=49|", 1, "Required tag missing"),
        (
            "35=D|34=2|52=now|11=x|",
            "371=52|",
            6,
            "Incorrect data format for value",
        ),
        ("35=D|34=2|43=X|11=x|", "371=43|", 6, "Incorrect data format for value"),
        ("35=D|34=2|34=2|11=x|", "371=34|", 13, "Tag appears more than once"),
        ("35=D|34=2|57=|11=x|", "371=57|", 4, "Tag specified without a value"),
        ("35=D|34=2|q=1|11=x|", "", 0, "Invalid tag number"),
    ] {
        let mut end = End::logged_on();
        assert_eq!(
            end.receives(message),
            [format!("35=3|34=2|45=2|58={text}|{tag}372=D|373={reason}|")],
            "{message}"
        );
        assert_eq!(end.numbers(), (3, 3));
    }
}

#[test]
fn an_administrative_message_that_breaks_a_rule_is_rejected() {
    for (message, tag, reason) in [
        ("35=1|34=2|", 112, 1),
        ("35=2|34=2|7=1|", 16, 1),
        ("35=2|34=2|7=0|16=0|", 7, 5),
        ("35=2|34=2|7=5|16=0|", 7, 5),
        ("35=2|34=2|7=1|7=1|16=0|", 7, 13),
        ("35=2|34=2|7=x|16=0|", 7, 6),
        ("35=4|34=2|123=Y|", 36, 1),
        ("35=4|34=2|123=Y|36=2|", 36, 5),
        ("35=4|34=2|123=Y|36=1|", 36, 5),
        ("35=1|34=2|112=a|34=2|", 34, 14),
        ("35=1|34=2|112=a|50=DESK|", 50, 14),
    ] {
        let mut end = End::logged_on();
        let did = end.receives(message);
        assert_eq!(did.len(), 1, "{message}");
        assert!(did[0].starts_with("35=3|34=2|45=2|"), "{message}: {did:?}");
        assert!(did[0].contains(&format!("|371={tag}|")), "{message}: {did:?}");
        assert!(did[0].ends_with(&format!("|373={reason}|")), "{message}: {did:?}");
        assert_eq!(end.numbers(), (3, 3));
    }
}

#[test]
fn a_gap_fill_moves_the_expected_number() {
    let mut end = End::logged_on();
    assert!(end.receives("35=4|34=2|36=10|123=Y|").is_empty());
    assert_eq!(end.numbers().0, 10);
    // Too high, too low, and too low as a possible duplicate, like any message.
    assert_eq!(end.receives("35=4|34=12|36=20|123=Y|"), ["35=2|34=2|7=10|16=0|"]);
    assert!(end.receives("35=4|34=2|43=Y|36=20|123=Y|").is_empty());
    assert_eq!(end.numbers().0, 10);
    assert!(end.receives("35=4|34=2|36=20|123=Y|")[1].starts_with("close: SequenceTooLow"));
}

#[test]
fn a_reset_raises_the_expected_number_whatever_its_own() {
    for number in [0, 1, 2, 9] {
        let mut end = End::logged_on();
        assert!(end.receives(&format!("35=4|34={number}|36=20|")).is_empty());
        assert_eq!(end.numbers().0, 20);
        assert_eq!(end.receives("35=D|34=20|11=x|"), ["application 20: 11=x|"]);
    }
}

#[test]
fn a_reset_never_lowers_the_expected_number() {
    let mut end = End::logged_on();
    end.receives("35=0|34=2|");
    assert_eq!(
        end.receives("35=4|34=3|36=2|123=N|"),
        ["35=3|34=2|45=3|58=Value is incorrect (out of range) for this tag|372=4|373=5|"]
    );
    assert_eq!(
        end.receives("35=4|34=0|36=2|"),
        ["35=3|34=3|45=0|58=Value is incorrect (out of range) for this tag|372=4|373=5|"]
    );
    assert_eq!(end.numbers().0, 3);
    assert!(end.receives("35=4|34=3|36=3|").is_empty());
}

#[test]
fn a_reset_ends_a_gap() {
    let mut end = End::logged_on();
    end.receives("35=D|34=5|11=x|");
    end.receives("35=4|34=6|36=6|");
    assert_eq!(end.receives("35=D|34=6|11=x|"), ["application 6: 11=x|"]);
    assert_eq!(end.receives("35=D|34=8|11=x|"), ["35=2|34=3|7=7|16=0|"]);
}

#[test]
fn numbers_go_on_after_a_lost_connection() {
    let mut end = End::logged_on();
    end.receives("35=D|34=2|11=x|");
    end.sends("news");
    end.drop_connection();
    end.connect();
    assert_eq!(
        end.receives("35=A|34=3|98=0|108=30|"),
        ["35=A|34=3|98=0|108=30|", "logged on"]
    );
    assert_eq!(end.numbers(), (4, 4));
}

#[test]
fn a_reject_is_for_information() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=3|34=2|45=1|373=5|"), ["application 2: 45=1|373=5|"]);
}
