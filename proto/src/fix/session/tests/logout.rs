//! Logout, and what ends a session otherwise.

use super::*;

#[test]
fn a_logout_is_answered_and_the_peer_closes() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=5|34=2|58=bye|"), ["logged out: bye", "35=5|34=2|"]);
    assert!(!end.session.is_logged_on());
    // The last word was said: what is sent now waits for the next logon.
    assert!(end.sends("late").is_empty());
    assert!(end.receives("35=0|34=3|").is_empty());
    assert_eq!(end.waits(Duration::from_secs(60)), ["1 s: close: LogoutTimeout: "]);
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

#[test]
fn a_logout_whose_gap_stays_is_answered_after_a_while() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=5|34=6|"), ["35=2|34=2|7=2|16=0|"]);
    end.waits(SECOND);
    // Progress puts it off.
    assert_eq!(
        end.receives("35=D|34=2|43=Y|122=20260301-00:00:00|11=x|"),
        ["application 2: 11=x|"]
    );
    assert_eq!(
        end.waits(Duration::from_secs(10)),
        ["2 s: logged out: ", "2 s: 35=5|34=3|", "3 s: close: LogoutTimeout: "]
    );
    // What is missing is asked for at the next logon.
    assert_eq!(end.numbers().0, 3);
}

#[test]
fn a_gap_fill_over_a_logout_does_not_swallow_it() {
    let mut end = End::logged_on();
    end.receives("35=5|34=4|");
    assert_eq!(
        end.receives("35=4|34=2|43=Y|36=5|123=Y|"),
        ["logged out: ", "35=5|34=3|"]
    );
    assert_eq!(end.numbers().0, 5);
}

#[test]
fn a_logout_is_answered_at_once_where_numbers_end_with_the_connection() {
    let mut end = End::new(Role::Acceptor, |config| config.reset_on_logon = ResetOnLogon::Always);
    end.connect();
    end.receives("35=A|34=1|98=0|108=30|");
    assert_eq!(end.receives("35=5|34=9|58=bye|"), ["logged out: bye", "35=5|34=2|"]);
    assert_eq!(end.numbers().0, 2);
}

#[test]
fn a_logout_with_a_number_that_is_too_low_is_still_a_logout() {
    let mut end = End::logged_on();
    end.receives("35=0|34=2|");
    assert_eq!(end.receives("35=5|34=2|"), ["logged out: ", "35=5|34=2|"]);
    assert_eq!(end.numbers().0, 3);
    // Not when it was seen.
    let mut end = End::logged_on();
    end.receives("35=0|34=2|");
    assert!(end.receives("35=5|34=2|43=Y|122=20260301-00:00:00|").is_empty());
}

/// What a peer that is turned away is told.
const WRONG: [(&str, &str, &str); 5] = [
    ("35=D|34=2|49=OTHER|11=x|", "35=5|34=3|", "CompId"),
    ("35=D|34=2|56=OTHER|11=x|", "35=5|34=3|", "CompId"),
    ("35=D|34=2|52=20260228-23:57:59.999|11=x|", "35=5|34=3|", "SendingTime"),
    (
        "35=D|34=2|43=Y|122=20260301-00:00:01|11=x|",
        "35=5|34=3|",
        "SendingTime",
    ),
    (
        "8=FIX.4.2|35=D|34=2|11=x|",
        "35=5|34=2|58=Incorrect BeginString|",
        "BeginString",
    ),
];

#[test]
fn a_peer_that_is_turned_away_may_answer_and_is_closed() {
    for (message, logout, reason) in WRONG {
        for number in [2, 3, 9] {
            let mut end = End::logged_on();
            assert_eq!(end.receives(message).last().unwrap(), logout);
            assert!(!end.session.is_logged_on());
            assert!(end.receives("35=D|34=3|11=y|").is_empty(), "nothing else is heard");
            assert_eq!(
                end.receives(&format!("35=5|34={number}|58=sorry|")),
                [format!("close: {reason}: sorry")]
            );
            let expected = if reason == "BeginString" { 2 } else { 3 };
            assert_eq!(end.numbers().0, expected + u64::from(number == expected));
        }
    }
}

#[test]
fn a_peer_that_is_turned_away_and_says_nothing_is_closed() {
    for (message, logout, reason) in WRONG {
        let mut end = End::logged_on();
        assert_eq!(end.receives(message).last().unwrap(), logout);
        assert_eq!(end.waits(Duration::from_secs(60)), [format!("1 s: close: {reason}: ")]);
    }
}

#[test]
fn a_new_session_day_logs_a_live_peer_out_and_starts_at_one() {
    let mut end = End::logged_on();
    end.sends("old");
    end.session.on_new_session_day(end.now, &mut end.did);
    assert_eq!(end.done(), ["35=5|34=3|58=end of the session day|"]);
    // What was on its way belongs to the old day.
    assert_eq!(end.receives("35=D|34=2|11=x|"), ["application 2: 11=x|"]);
    assert_eq!(end.receives("35=5|34=3|"), ["close: LoggedOut: "]);
    end.drop_connection();
    assert_eq!(end.numbers(), (1, 1));
    end.connect();
    assert_eq!(
        end.receives("35=A|34=1|98=0|108=30|"),
        ["35=A|34=1|98=0|108=30|", "logged on"]
    );
    // It happens once.
    end.drop_connection();
    assert_eq!(end.numbers(), (2, 2));
}

#[test]
fn a_new_session_day_without_a_peer_starts_at_one_at_once() {
    let mut end = End::logged_on();
    end.drop_connection();
    end.sends("old");
    end.session.on_new_session_day(end.now, &mut end.did);
    assert!(end.done().is_empty());
    assert_eq!(end.numbers(), (1, 1));
    end.connect();
    end.session.on_new_session_day(end.now, &mut end.did);
    assert_eq!(
        end.receives("35=A|34=1|98=0|108=30|"),
        ["35=A|34=1|98=0|108=30|", "logged on"]
    );
    assert_eq!(
        end.receives("35=2|34=2|7=1|16=0|"),
        ["35=4|34=1|43=Y|122=20260301-00:00:00.000|36=2|123=Y|"],
        "what was sent the day before is gone"
    );
}
