//! Logon: who may, with which numbers, in which version.

use super::*;
use alloc::vec;

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
        ("35=A|34=1|108=30|", "Required tag missing (98)"),
        ("35=A|34=1|98=0|", "Required tag missing (108)"),
        (
            "35=A|34=1|98=1|108=30|",
            "Value is incorrect (out of range) for this tag (98)",
        ),
        ("35=A|34=1|98=0|108=-1|", "Incorrect data format for value (108)"),
        (
            "35=A|34=1|98=0|108=100000|",
            "Value is incorrect (out of range) for this tag (108)",
        ),
        (
            "35=A|34=x|98=0|108=30|",
            "Value is incorrect (out of range) for this tag (34)",
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
        ("35=A|34=1|-52|98=0|108=30|", "Required tag missing (52)"),
        (
            "35=A|34=2|98=0|108=30|141=Y|",
            "ResetSeqNumFlag with a MsgSeqNum other than 1",
        ),
        ("35=A|34=1|98=0|108=30|141=X|", "Incorrect data format for value (141)"),
        (
            "35=A|34=1|98=0|108=30|789=2|",
            "NextExpectedMsgSeqNum is higher than what was sent",
        ),
        (
            "35=A|34=1|98=0|108=30|789=0|",
            "Value is incorrect (out of range) for this tag (789)",
        ),
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

/// Versions by the first end's config, and what a Logon of each names itself.
fn in_versions(versions: &[Version]) -> End {
    End::new(Role::Acceptor, |config| config.versions = versions.to_vec())
}

#[test]
fn a_logon_is_answered_in_its_version() {
    for version in Version::ALL {
        let mut end = in_versions(&Version::ALL);
        end.version = version;
        end.connect();
        let named = version
            .appl_ver_id()
            .map_or(String::new(), |code| format!("1137={}|", char::from(code)));
        let logon = format!("35=A|34=1|98=0|108=30|{named}");
        assert_eq!(end.receives(&logon), [logon.as_str(), "logged on"]);
        assert_eq!(end.session.version(), version);
        let begin = format!("8={}\x019=", core::str::from_utf8(version.begin_string()).unwrap());
        assert!(end.did.journal[0].starts_with(begin.as_bytes()));
    }
}

#[test]
fn only_versions_of_the_session_log_on() {
    let allowed = [Version::Fix42, Version::Fix50Sp1];
    for (message, text) in [
        ("8=FIX.4.4|35=A|34=1|98=0|108=30|", "Incorrect BeginString"),
        ("8=FIX.3.9|35=A|34=1|98=0|108=30|", "Incorrect BeginString"),
        ("8=FIXT.1.1|35=A|34=1|98=0|108=30|", "Required tag missing (1137)"),
        (
            "8=FIXT.1.1|35=A|34=1|98=0|108=30|1137=9|",
            "Value is incorrect (out of range) for this tag (1137)",
        ),
        (
            "8=FIXT.1.1|35=A|34=1|98=0|108=30|1137=4|",
            "Value is incorrect (out of range) for this tag (1137)",
        ),
    ] {
        let mut end = in_versions(&allowed);
        end.connect();
        assert_eq!(
            end.receives(message),
            [format!("35=5|34=1|58={text}|"), format!("close: LogonRefused: {text}")],
            "{message}"
        );
    }
    let mut end = in_versions(&allowed);
    end.connect();
    let logon = "35=A|34=1|98=0|108=30|1137=8|";
    assert_eq!(end.receives(&format!("8=FIXT.1.1|{logon}"))[1], "logged on");
}

#[test]
fn an_initiator_speaks_its_first_version() {
    let mut end = End::new(Role::Initiator, |config| config.versions = vec![Version::Fix50Sp2]);
    assert_eq!(end.connect(), ["35=A|34=1|98=0|108=30|1137=9|"]);
    assert_eq!(end.receives("35=A|34=1|98=0|108=30|1137=9|"), ["logged on"]);
}

#[test]
fn credentials_are_told_and_not_judged_and_never_printed() {
    let bytes = wire("35=A|34=1|98=0|108=30|553=ann|554=secret|", Version::Fix44, START);
    let mut scratch = Scratch::new();
    let logon = Logon::decode(&scratch.parse(&bytes), Version::Fix44).unwrap();
    assert_eq!((logon.username, logon.password), (&b"ann"[..], &b"secret"[..]));
    let printed = format!("{logon:?}");
    assert!(printed.contains("ann") && !printed.contains("secret"));
    let mut end = End::new(Role::Acceptor, |_| ());
    end.connect();
    assert_eq!(end.receives_bytes(&bytes), ["35=A|34=1|98=0|108=30|", "logged on"]);
}

#[test]
fn a_session_for_anyone_is_bound_to_whom_it_gets() {
    let mut end = End::new(Role::Acceptor, |config| {
        config.target_comp_id = CompId::new(b"*").unwrap()
    });
    end.session.bind(CompId::new(b"PEER").unwrap());
    end.connect();
    assert_eq!(end.receives("35=A|34=1|98=0|108=30|")[1], "logged on");
    let answer = String::from_utf8_lossy(&end.did.journal[0]).to_string();
    assert!(answer.contains("\x0149=US\x01") && answer.contains("\x0156=PEER\x01"));
}

/// An acceptor that has sent 1 Logon, 2 and 3 news, and has seen 1 and 2.
fn with_history(next_expected: bool) -> End {
    let mut end = End::new(Role::Acceptor, |config| config.next_expected = next_expected);
    end.connect();
    end.receives("35=A|34=1|98=0|108=30|");
    end.receives("35=0|34=2|");
    end.sends("two");
    end.sends("three");
    end.drop_connection();
    end.connect();
    end
}

#[test]
fn what_a_peer_says_it_misses_is_sent_unasked() {
    let mut end = with_history(false);
    assert_eq!(
        end.receives("35=A|34=3|98=0|108=30|789=3|"),
        [
            "35=A|34=4|98=0|108=30|789=4|".to_string(),
            "logged on".to_string(),
            "35=B|34=3|43=Y|122=20260301-00:00:00.000|58=three|".to_string(),
            "35=4|34=4|43=Y|122=20260301-00:00:00.000|36=5|123=Y|".to_string(),
        ]
    );
    // Nothing is missing.
    let mut end = with_history(false);
    assert_eq!(
        end.receives("35=A|34=3|98=0|108=30|789=4|"),
        ["35=A|34=4|98=0|108=30|789=4|", "logged on"]
    );
}

#[test]
fn an_expected_number_that_is_too_high_is_refused() {
    let mut end = with_history(false);
    let text = "NextExpectedMsgSeqNum is higher than what was sent";
    assert_eq!(
        end.receives("35=A|34=3|98=0|108=30|789=5|"),
        [format!("35=5|34=4|58={text}|"), format!("close: LogonRefused: {text}")]
    );
    assert_eq!(end.numbers(), (3, 4));
}

#[test]
fn a_peer_that_is_told_what_is_missing_is_not_asked_for_it() {
    let mut end = with_history(false);
    assert_eq!(
        end.receives("35=A|34=6|98=0|108=30|789=4|"),
        ["35=A|34=4|98=0|108=30|789=3|", "logged on"]
    );
    for number in 3..=5 {
        let message = format!("35=D|34={number}|43=Y|122=20260301-00:00:00|11=x|");
        assert_eq!(end.receives(&message), [format!("application {number}: 11=x|")]);
    }
    // The Logon is number 6.
    assert_eq!(end.numbers().0, 7);
    // One that does not say it is asked, whatever it was told.
    let mut end = with_history(true);
    assert_eq!(
        end.receives("35=A|34=6|98=0|108=30|"),
        ["35=A|34=4|98=0|108=30|789=3|", "logged on", "35=2|34=5|7=3|16=0|"]
    );
}

#[test]
fn versions_before_4_4_do_not_say_what_they_expect() {
    let mut end = End::new(Role::Acceptor, |config| {
        config.versions = vec![Version::Fix43];
        config.next_expected = true;
    });
    end.connect();
    assert_eq!(
        end.receives("35=A|34=1|98=0|108=30|"),
        ["35=A|34=1|98=0|108=30|", "logged on"]
    );
}

#[test]
fn an_initiator_that_says_what_it_expects_sends_what_its_peer_misses() {
    let mut end = End::new(Role::Initiator, |config| config.next_expected = true);
    assert_eq!(end.connect(), ["35=A|34=1|98=0|108=30|789=1|"]);
    end.receives("35=A|34=1|98=0|108=30|789=2|");
    end.sends("two");
    end.drop_connection();
    assert_eq!(end.connect(), ["35=A|34=3|98=0|108=30|789=2|"]);
    assert_eq!(
        end.receives("35=A|34=2|98=0|108=30|789=2|"),
        [
            "logged on",
            "35=B|34=2|43=Y|122=20260301-00:00:00.000|58=two|",
            "35=4|34=3|43=Y|122=20260301-00:00:00.000|36=4|123=Y|",
        ]
    );
}

#[test]
fn a_logon_with_a_gap_needs_no_gap_fill_for_itself() {
    let mut end = End::new(Role::Acceptor, |_| ());
    end.connect();
    end.receives("35=A|34=3|98=0|108=30|");
    for number in 1..=2 {
        end.receives(&format!("35=D|34={number}|43=Y|122=20260301-00:00:00|11=x|"));
    }
    assert_eq!(end.numbers().0, 4);
    assert_eq!(end.receives("35=D|34=4|11=x|"), ["application 4: 11=x|"]);
}
