//! What a FIX client asks to hear again, however long ago it was said: from memory, and from the journal behind that.

use crate::fix::{Logon, field, order};
use crate::fixture::{FIX, Fixture, START};
use proto::fix::{Body, Encoder, msg_type, tag};
use std::collections::BTreeMap;
use types::{ExecType, Reason, ShardId};

/// Asks for everything from a number on.
pub(crate) struct ResendRequest(pub(crate) u64);

impl Body for ResendRequest {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::RESEND_REQUEST
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        encoder.number(tag::BEGIN_SEQ_NO, self.0);
        encoder.number(tag::END_SEQ_NO, 0);
    }
}

/// A Logon that starts both numbers at 1.
pub(crate) struct LogonWithReset;

impl Body for LogonWithReset {
    fn msg_type(&self) -> &'static [u8] {
        msg_type::LOGON
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        Logon.encode(encoder);
        encoder.flag(tag::RESET_SEQ_NUM_FLAG, true);
    }
}

/// Messages by number, as they were said first.
pub(crate) type Said = BTreeMap<u64, String>;

pub(crate) fn number(message: &str) -> u64 {
    field(message, 34).and_then(|text| text.parse().ok()).expect("a number")
}

/// What a message says: its type and its body.
pub(crate) fn body(message: &str) -> Vec<&str> {
    let is_of_body = |field: &&str| {
        let tag = field.split_once('=').map_or("", |(tag, _)| tag);
        !["8", "9", "34", "43", "49", "52", "56", "122", "10", ""].contains(&tag)
    };
    message.split('|').filter(is_of_body).collect()
}

/// Holds a replay against what was said: every application message again, byte for byte, a gap fill over each run of
/// others, every number from `begin` to `end` once and in order.
pub(crate) fn assert_repeats(replay: &[String], said: &Said, begin: u64, end: u64) {
    let mut next = begin;
    for message in replay {
        assert_eq!((number(message), field(message, 43)), (next, Some("Y")), "{message}");
        if field(message, 35) == Some("4") {
            let to = field(message, 36).and_then(|text| text.parse().ok()).expect("a number");
            for number in next..to {
                let passed = said.get(&number).map_or("", |said| field(said, 35).unwrap_or_default());
                assert!(
                    !matches!(passed, "8" | "9" | "3" | "j"),
                    "{number} is passed over: {message}"
                );
            }
            next = to;
        } else {
            let first = &said[&next];
            assert_eq!(body(message), body(first));
            assert_eq!(field(message, 122), field(first, 52), "{message}");
            next += 1;
        }
    }
    assert_eq!(next, end + 1, "every number is told of");
}

/// Everything the client is told, noted in what was said.
fn hear(fixture: &mut Fixture, said: &mut Said) {
    for message in fixture.all_fix_messages() {
        assert_eq!(field(&message, 43), None, "{message}");
        let before = said.insert(number(&message), message);
        assert_eq!(before, None, "no number comes twice");
    }
}

/// Logs on and gives what follows the answer, which is noted.
fn log_on(fixture: &mut Fixture, body: &impl Body, said: &mut Said) {
    let bytes = fixture.fix_bytes(body);
    fixture.shard.client(FIX, &bytes);
    hear(fixture, said);
}

/// Orders that are accepted and filled: two reports each.
fn trade(fixture: &mut Fixture, orders: std::ops::Range<usize>, said: &mut Said) {
    for order_number in orders {
        let id = format!("A-{order_number}");
        let bytes = fixture.fix_bytes(&order(&id, "ALFA"));
        fixture.shard.client(FIX, &bytes);
        fixture.venue(ExecType::New, 0, 10, 0);
        fixture.venue(ExecType::Fill, 10, 0, 10);
        hear(fixture, said);
    }
}

fn asked(fixture: &mut Fixture, begin: u64) -> Vec<String> {
    let bytes = fixture.fix_bytes(&ResendRequest(begin));
    fixture.shard.client(FIX, &bytes);
    fixture.all_fix_messages()
}

#[test]
fn a_thousand_reports_are_sent_again_by_a_session_that_holds_sixteen() {
    let mut fixture = Fixture::with("resend_messages = 256", "resend_messages = 16");
    let mut said = Said::new();
    log_on(&mut fixture, &Logon, &mut said);
    trade(&mut fixture, 0..500, &mut said);
    assert_repeats(&asked(&mut fixture, 1), &said, 1, 1_001);
    assert_repeats(&asked(&mut fixture, 700), &said, 700, 1_001);
    // After a restart the places are known again.
    let mut fixture = fixture.restart();
    log_on(&mut fixture, &Logon, &mut said);
    assert_repeats(&asked(&mut fixture, 1), &said, 1, 1_002);
    trade(&mut fixture, 500..520, &mut said);
    assert_repeats(&asked(&mut fixture, 2), &said, 2, 1_042);
    let (config, _folder) = fixture.stop();
    let summary = gateway::replay::verify(&config, ShardId(0)).expect("what was looked up is an input");
    assert_eq!(summary.cut_off, 0);
}

#[test]
fn what_came_while_the_client_was_away_is_told_however_much_it_was() {
    let mut fixture = Fixture::with("resend_messages = 256", "resend_messages = 16");
    let mut said = Said::new();
    log_on(&mut fixture, &Logon, &mut said);
    let mut sent = Vec::new();
    for order_number in 0..80 {
        let bytes = fixture.fix_bytes(&order(&format!("A-{order_number}"), "ALFA"));
        fixture.shard.client(FIX, &bytes);
        fixture.venue(ExecType::New, 0, 10, 0);
        sent.extend(fixture.sent().1.map(|request| request.client_order_id()));
    }
    hear(&mut fixture, &mut said);
    assert_eq!(said.len(), 81);
    fixture.shard.disconnect(FIX);
    // The orders are cancelled, the client does not hear of it.
    for number in sent {
        fixture.venue_about(number, ExecType::Canceled, Reason::None, 0, 0, 0);
    }
    let mut fixture = fixture.restart();
    let mut heard = Vec::new();
    let bytes = fixture.fix_bytes(&Logon);
    fixture.shard.client(FIX, &bytes);
    heard.extend(fixture.all_fix_messages());
    let answer = heard
        .iter()
        .find(|message| field(message, 35) == Some("A"))
        .expect("an answer");
    assert_eq!(number(answer), 162, "each report has its number");
    let replay = asked(&mut fixture, 82);
    let cancelled = replay.iter().filter(|message| field(message, 150) == Some("4"));
    assert_eq!(
        cancelled.map(|message| number(message)).collect::<Vec<_>>(),
        (82..162).collect::<Vec<_>>()
    );
}

#[test]
fn a_reset_ends_what_can_be_asked_for() {
    let mut fixture = Fixture::with("resend_messages = 256", "resend_messages = 16");
    let mut said = Said::new();
    log_on(&mut fixture, &Logon, &mut said);
    trade(&mut fixture, 0..100, &mut said);
    fixture.shard.disconnect(FIX);
    fixture.shard.connect(FIX);
    fixture.restart_fix_sequence();
    let mut said = Said::new();
    log_on(&mut fixture, &LogonWithReset, &mut said);
    trade(&mut fixture, 100..150, &mut said);
    assert_repeats(&asked(&mut fixture, 1), &said, 1, 101);
    let mut fixture = fixture.restart();
    log_on(&mut fixture, &Logon, &mut said);
    assert_repeats(&asked(&mut fixture, 1), &said, 1, 102);
}

#[test]
fn what_is_numbered_after_a_new_session_day_can_be_asked_for() {
    let mut fixture = Fixture::with("resend_messages = 256", "resend_messages = 16");
    log_on(&mut fixture, &Logon, &mut Said::new());
    let mut sent = Vec::new();
    for order_number in 0..80 {
        let bytes = fixture.fix_bytes(&order(&format!("A-{order_number}"), "ALFA"));
        fixture.shard.client(FIX, &bytes);
        fixture.venue(ExecType::New, 0, 10, 0);
        sent.extend(fixture.sent().1.map(|request| request.client_order_id()));
    }
    fixture.all_fix_messages();
    fixture.shard.disconnect(FIX);
    fixture.shard.hours(FIX, Some(START));
    // The numbers are those of the new day already.
    for number in sent {
        fixture.venue_about(number, ExecType::Canceled, Reason::None, 0, 0, 0);
    }
    fixture.shard.connect(FIX);
    fixture.restart_fix_sequence();
    let mut said = Said::new();
    log_on(&mut fixture, &Logon, &mut said);
    assert_eq!(said.keys().copied().collect::<Vec<_>>(), [81]);
    let replay = asked(&mut fixture, 1);
    let cancelled = replay.iter().filter(|message| field(message, 150) == Some("4"));
    assert_eq!(
        cancelled.map(|message| number(message)).collect::<Vec<_>>(),
        (1..81).collect::<Vec<_>>()
    );
}
