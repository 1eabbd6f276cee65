//! Logon, reset, Logout.

use super::*;

#[test]
fn an_acceptor_answers_a_logon_with_the_peers_interval() {
    let mut end = End::new(Role::Acceptor, |_| ());
    assert!(end.connect().is_empty());
    assert_eq!(
        end.receives("35=A|34=1|98=0|108=7|"),
        ["35=A|34=1|98=0|108=7|", "logged on"]
    );
    assert!(end.session.is_logged_on());
    assert_eq!(end.numbers(), (2, 2));
}

#[test]
fn an_initiator_says_logon_and_is_logged_on_by_the_answer() {
    let mut end = End::new(Role::Initiator, |_| ());
    assert_eq!(end.connect(), ["35=A|34=1|98=0|108=30|"]);
    assert!(!end.session.is_logged_on());
    assert_eq!(end.receives("35=A|34=1|98=0|108=30|"), ["logged on"]);
    assert_eq!(end.numbers(), (2, 2));
}

#[test]
fn a_first_message_that_is_no_logon_closes_without_a_word() {
    for message in ["35=D|34=1|11=x|", "35=0|34=1|", "35=5|34=1|", "35=4|34=1|36=9|"] {
        let mut end = End::new(Role::Acceptor, |_| ());
        end.connect();
        assert_eq!(end.receives(message), ["close: NotLogon: "]);
        assert_eq!(end.numbers(), (1, 1));
    }
}

#[test]
fn a_refused_logon_says_why_and_leaves_no_trace() {
    for (message, text) in [
        ("8=FIX.4.2|35=A|34=1|98=0|108=30|", "Incorrect BeginString"),
        ("35=A|34=1|108=30|", "Required tag missing"),
        ("35=A|34=1|98=0|", "Required tag missing"),
        (
            "35=A|34=1|98=1|108=30|",
            "Value is incorrect (out of range) for this tag",
        ),
        ("35=A|34=1|98=0|108=-1|", "Incorrect data format for value"),
        (
            "35=A|34=1|98=0|108=100000|",
            "Value is incorrect (out of range) for this tag",
        ),
        (
            "35=A|34=x|98=0|108=30|",
            "Value is incorrect (out of range) for this tag",
        ),
        ("35=A|34=1|49=OTHER|98=0|108=30|", "CompID problem"),
        ("35=A|34=1|56=OTHER|98=0|108=30|", "CompID problem"),
        (
            "35=A|34=1|52=20260228-23:57:59|98=0|108=30|",
            "SendingTime accuracy problem",
        ),
        (
            "35=A|34=1|52=20260301-00:02:01|98=0|108=30|",
            "SendingTime accuracy problem",
        ),
        ("35=A|34=1|-52|98=0|108=30|", "Required tag missing"),
        (
            "35=A|34=2|98=0|108=30|141=Y|",
            "ResetSeqNumFlag with a MsgSeqNum other than 1",
        ),
        ("35=A|34=1|98=0|108=30|141=X|", "Incorrect data format for value"),
    ] {
        let mut end = End::new(Role::Acceptor, |_| ());
        end.connect();
        assert_eq!(
            end.receives(message),
            [format!("35=5|34=1|58={text}|"), format!("close: LogonRefused: {text}")],
            "{message}"
        );
        assert_eq!(end.numbers(), (1, 1));
        end.drop_connection();
        end.connect();
        assert_eq!(end.receives("35=A|34=1|98=0|108=30|")[1], "logged on");
        assert_eq!(end.session.counters().logons_refused, 1);
    }
}

#[test]
fn a_logon_below_the_expected_number_is_refused() {
    let mut end = End::logged_on();
    end.receives("35=0|34=2|");
    end.drop_connection();
    end.connect();
    let text = "MsgSeqNum too low, expecting 3 but received 2";
    assert_eq!(
        end.receives("35=A|34=2|98=0|108=30|"),
        [format!("35=5|34=2|58={text}|"), format!("close: LogonRefused: {text}")]
    );
    assert_eq!(end.numbers(), (3, 2));
}

#[test]
fn a_logon_with_a_gap_logs_on_and_recovers() {
    let mut end = End::new(Role::Acceptor, |_| ());
    end.connect();
    assert_eq!(
        end.receives("35=A|34=5|98=0|108=30|"),
        ["35=A|34=1|98=0|108=30|", "logged on", "35=2|34=2|7=1|16=0|"]
    );
    assert_eq!(end.numbers(), (1, 3));
    assert!(end.receives("35=4|34=1|43=Y|36=6|123=Y|").is_empty());
    assert_eq!(end.numbers(), (6, 3));
}

#[test]
fn a_reset_flag_starts_both_ends_at_one() {
    let mut end = End::logged_on();
    end.sends("old");
    end.drop_connection();
    end.connect();
    assert_eq!(
        end.receives("35=A|34=1|98=0|108=30|141=Y|"),
        ["35=A|34=1|98=0|108=30|141=Y|", "logged on"]
    );
    assert_eq!(end.numbers(), (2, 2));
    // What had the number 2 before is gone.
    assert_eq!(
        end.receives("35=2|34=2|7=1|16=0|"),
        ["35=4|34=1|43=Y|122=20260301-00:00:00.000|36=2|123=Y|"]
    );
}

#[test]
fn a_logon_may_reset_a_session_that_goes_on() {
    let mut end = End::logged_on();
    end.receives("35=0|34=2|");
    assert_eq!(
        end.receives("35=A|34=1|98=0|108=10|141=Y|"),
        ["35=A|34=1|98=0|108=10|141=Y|"]
    );
    assert!(end.session.is_logged_on());
    assert_eq!(end.numbers(), (2, 2));
}

#[test]
fn a_second_logon_is_refused_and_the_session_goes_on() {
    let mut end = End::logged_on();
    assert_eq!(
        end.receives("35=A|34=2|98=0|108=30|"),
        ["35=3|34=2|45=2|58=Other|371=35|372=A|373=99|"]
    );
    assert!(end.session.is_logged_on());
}

#[test]
fn an_acceptor_may_reset_at_each_logon() {
    let mut end = End::new(Role::Acceptor, |config| config.reset_on_logon = ResetOnLogon::Always);
    for _ in 0..3 {
        end.connect();
        assert_eq!(end.receives("35=A|34=1|98=0|108=30|")[1], "logged on");
        end.sends("news");
        assert_eq!(end.numbers(), (2, 3));
        end.drop_connection();
    }
}

#[test]
fn an_initiator_may_ask_for_a_reset() {
    let mut end = End::new(Role::Initiator, |config| config.reset_on_logon = ResetOnLogon::Always);
    for _ in 0..3 {
        assert_eq!(end.connect(), ["35=A|34=1|98=0|108=30|141=Y|"]);
        assert_eq!(end.receives("35=A|34=1|98=0|108=30|141=Y|"), ["logged on"]);
        end.sends("news");
        assert_eq!(end.numbers(), (2, 3));
        end.drop_connection();
    }
}

#[test]
fn an_initiator_that_kept_no_numbers_asks_for_a_reset_once() {
    let mut end = End::new(Role::Initiator, |config| config.reset_on_logon = ResetOnLogon::First);
    for _ in 0..2 {
        assert_eq!(end.connect(), ["35=A|34=1|98=0|108=30|141=Y|"]);
        end.drop_connection();
    }
    end.connect();
    assert_eq!(end.receives("35=A|34=1|98=0|108=30|141=Y|"), ["logged on"]);
    end.sends("news");
    end.drop_connection();
    assert_eq!(end.connect(), ["35=A|34=3|98=0|108=30|"]);
    assert_eq!(end.receives("35=A|34=2|98=0|108=30|"), ["logged on"]);
}

#[test]
fn an_initiator_follows_a_reset_it_did_not_ask_for() {
    let mut end = End::new(Role::Initiator, |_| ());
    end.connect();
    end.receives("35=A|34=1|98=0|108=30|");
    end.sends("news");
    end.drop_connection();
    assert_eq!(end.connect(), ["35=A|34=3|98=0|108=30|"]);
    assert_eq!(end.receives("35=A|34=1|98=0|108=30|141=Y|"), ["logged on"]);
    assert_eq!(end.numbers(), (2, 2));
}

#[test]
fn an_initiator_tells_why_it_was_refused() {
    let mut end = End::new(Role::Initiator, |_| ());
    end.connect();
    assert_eq!(
        end.receives("35=5|34=1|58=go away|"),
        ["close: LogonRefusedByPeer: go away"]
    );
    assert_eq!(end.numbers(), (1, 2));
}

#[test]
fn a_logon_that_does_not_come_ends_the_connection() {
    for role in [Role::Acceptor, Role::Initiator] {
        let mut end = End::new(role, |_| ());
        end.connect();
        assert_eq!(end.waits(Duration::from_secs(60)), ["10 s: close: LogonTimeout: "]);
        assert!(end.receives("35=A|34=1|98=0|108=30|").is_empty());
    }
}

#[test]
fn a_logout_is_answered_and_the_peer_closes() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=5|34=2|58=bye|"), ["logged out: bye", "35=5|34=2|"]);
    assert!(!end.session.is_logged_on());
    // The last word was said: what is sent now waits for the next logon.
    assert!(end.sends("late").is_empty());
    assert!(end.receives("35=0|34=3|").is_empty());
    assert_eq!(end.waits(Duration::from_secs(60)), ["10 s: close: LogoutTimeout: "]);
    end.drop_connection();
    end.connect();
    end.receives("35=A|34=3|98=0|108=30|");
    assert_eq!(
        end.receives("35=2|34=4|7=3|16=0|"),
        [
            "35=B|34=3|43=Y|122=20260301-00:00:00.000|58=late|",
            "35=4|34=4|43=Y|122=20260301-00:01:00.000|36=5|123=Y|"
        ]
    );
}

#[test]
fn a_logout_of_ours_closes_when_it_is_answered() {
    let mut end = End::logged_on();
    end.session.logout(end.now, b"end of day", &mut end.did);
    assert_eq!(end.done(), ["35=5|34=2|58=end of day|"]);
    // What was on its way still comes.
    assert_eq!(end.receives("35=D|34=2|11=x|"), ["application 2: 11=x|"]);
    assert_eq!(end.receives("35=5|34=3|"), ["close: LoggedOut: "]);
}

#[test]
fn a_logout_that_is_not_answered_ends_the_connection() {
    let mut end = End::logged_on();
    end.session.logout(end.now, b"", &mut end.did);
    end.done();
    assert_eq!(end.waits(Duration::from_secs(60)), ["10 s: close: LogoutTimeout: "]);
}

#[test]
fn a_logout_with_a_gap_is_answered_once_the_gap_is_filled() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=5|34=4|"), ["35=2|34=2|7=2|16=0|"]);
    assert_eq!(
        end.receives("35=D|34=2|43=Y|122=20260301-00:00:00|11=x|"),
        ["application 2: 11=x|"]
    );
    assert_eq!(
        end.receives("35=4|34=3|43=Y|36=5|123=Y|"),
        ["logged out: ", "35=5|34=3|"]
    );
    assert_eq!(end.numbers(), (5, 4));
}
