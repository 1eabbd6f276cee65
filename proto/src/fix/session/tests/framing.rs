//! From a stream of bytes to the session: what is garbled uses up no number, and what follows it is not lost.

use super::*;
use crate::fix::FrameBuffer;

/// A session that is logged on, fed by a stream.
struct Stream {
    end: End,
    frames: FrameBuffer,
}

impl Stream {
    fn new() -> Self {
        Self {
            end: End::logged_on(),
            frames: FrameBuffer::new(),
        }
    }

    /// Hands bytes in, one `chunk` at a time, and says what came of them.
    fn receives(&mut self, mut bytes: &[u8], chunk: usize) -> Vec<String> {
        let mut did = Vec::new();
        while !bytes.is_empty() {
            let space = self.frames.space();
            let length = space.len().min(bytes.len()).min(chunk);
            space[..length].copy_from_slice(&bytes[..length]);
            self.frames.received(length);
            bytes = &bytes[length..];
            while let Some(frame) = self.frames.next_frame() {
                did.extend(self.end.takes(frame));
            }
        }
        did
    }
}

fn message(text: &str) -> Vec<u8> {
    wire(text, Version::Fix44, START)
}

/// Garbled forms of an order with the number 2.
fn garbled() -> Vec<Vec<u8>> {
    let good = String::from_utf8(message("35=D|34=2|11=x|")).unwrap();
    let body = good.find("35=").unwrap();
    let end = good.rfind("10=").unwrap();
    [
        // A wrong sum, one that is no number, and none.
        format!("{}10=999\x01", &good[..end]),
        format!("{}10=abc\x01", &good[..end]),
        good[..end].to_string(),
        // A length that is too short, too long, no number, and none.
        format!("8=FIX.4.4\x019=20\x01{}", &good[body..]),
        format!("8=FIX.4.4\x019=90\x01{}", &good[body..]),
        format!("8=FIX.4.4\x019=x\x01{}", &good[body..]),
        format!("8=FIX.4.4\x01{}", &good[body..]),
        // The first three fields in another order, and something before them.
        format!("9=60\x018=FIX.4.4\x01{}", &good[body..]),
        format!("8=FIX.4.4\x0134=2\x01{}", &good[body..]),
        good.replace("49=PEER", "4garbled9=PEER"),
        "8=FIX".to_string(),
        "noise".to_string(),
        "10=000\x01".to_string(),
    ]
    .into_iter()
    .map(String::into_bytes)
    .collect()
}

#[test]
fn a_garbled_message_is_ignored_and_the_next_one_is_found() {
    for (index, garbled) in garbled().into_iter().enumerate() {
        for chunk in [1, 7, usize::MAX] {
            let mut stream = Stream::new();
            let bytes = [garbled.as_slice(), &message("35=D|34=2|11=y|")].concat();
            assert_eq!(
                stream.receives(&bytes, chunk),
                ["application 2: 11=y|"],
                "garbled {index} in chunks of {chunk}"
            );
            assert_eq!(stream.end.numbers().0, 3);
            assert!(stream.frames.garbled() > 0);
        }
    }
}

#[test]
fn a_garbled_message_leaves_a_gap_that_is_asked_for() {
    let mut stream = Stream::new();
    let mut wrong = message("35=D|34=2|11=x|");
    let last_digit = wrong.len() - 2;
    wrong[last_digit] = if wrong[last_digit] == b'0' { b'1' } else { b'0' };
    let bytes = [wrong, message("35=D|34=3|11=y|")].concat();
    assert_eq!(stream.receives(&bytes, usize::MAX), ["35=2|34=2|7=2|16=0|"]);
    assert_eq!(
        stream.receives(&message("35=D|34=2|43=Y|122=20260301-00:00:00|11=x|"), usize::MAX),
        ["application 2: 11=x|", "application 3: 11=y|"]
    );
}

#[test]
fn a_data_field_may_hold_the_delimiter() {
    let mut stream = Stream::new();
    // What looks like a field in it is none.
    let bytes = message("35=0|34=2|95=7|96=a\x0149=b\x01|");
    assert!(stream.receives(&bytes, usize::MAX).is_empty());
    assert_eq!(stream.end.numbers(), (3, 2));
}

#[test]
fn encoded_text_is_as_long_as_its_length_says() {
    let mut stream = Stream::new();
    let right = message("35=D|34=2|11=x|354=7|355=a\x0149=b\x01|");
    let did = stream.receives(&right, usize::MAX);
    assert_eq!(did, ["application 2: 11=x|354=7|355=a|49=b||"]);
    // The delimiter does not stand where the length says.
    let did = stream.receives(&message("35=D|34=3|11=x|354=6|355=abcdefg|"), usize::MAX);
    assert!(did.len() == 1 && did[0].starts_with("35=3|"), "{did:?}");
    assert!(did[0].contains("|45=3|") && did[0].contains("|371=355|"), "{did:?}");
}

#[test]
fn a_message_in_pieces_is_one_message() {
    let bytes = message("35=D|34=2|11=x|");
    for chunk in 1..bytes.len() {
        let mut stream = Stream::new();
        assert_eq!(stream.receives(&bytes, chunk), ["application 2: 11=x|"]);
    }
}

/// The first fields of a message that was too long.
fn too_long(end: &mut End, fields: &str) -> Vec<String> {
    let whole = wire(fields, Version::Fix44, end.now);
    let head = &whole[..whole.len() - "10=nnn|".len()];
    end.session
        .on_too_long(end.now, head, &mut Scratch::new(), &mut end.did);
    end.done()
}

#[test]
fn a_message_that_is_too_long_is_refused_and_its_number_is_used_up() {
    let mut end = End::logged_on();
    let reject = "58=message is longer than 4096 bytes|372=D|373=99|";
    assert_eq!(
        too_long(&mut end, "35=D|34=2|11=x|"),
        [format!("35=3|34=2|45=2|{reject}")]
    );
    assert_eq!(end.numbers(), (3, 3));
    assert_eq!(end.receives("35=D|34=3|11=y|"), ["application 3: 11=y|"]);
    assert_eq!(end.session.counters().too_long, 1);
}

#[test]
fn a_too_long_message_behind_a_gap_is_refused_when_it_comes_again() {
    let mut end = End::logged_on();
    assert_eq!(too_long(&mut end, "35=D|34=3|11=x|"), ["35=2|34=2|7=2|16=0|"]);
    let again = "43=Y|122=20260301-00:00:00|";
    assert_eq!(
        end.receives(&format!("35=D|34=2|{again}11=y|")),
        ["application 2: 11=y|"]
    );
    let did = too_long(&mut end, &format!("35=D|34=3|{again}11=x|"));
    assert!(did.len() == 1 && did[0].starts_with("35=3|34=3|45=3|"), "{did:?}");
    assert_eq!(end.numbers().0, 4);
    // Once more it was seen.
    assert!(too_long(&mut end, &format!("35=D|34=3|{again}11=x|")).is_empty());
    assert_eq!(end.numbers().0, 4);
}

#[test]
fn early_messages_have_their_turn_after_a_too_long_one() {
    let mut end = End::logged_on();
    assert_eq!(end.receives("35=D|34=3|11=y|"), ["35=2|34=2|7=2|16=0|"]);
    let did = too_long(&mut end, "35=D|34=2|43=Y|122=20260301-00:00:00|11=x|");
    assert!(did.len() == 1 && did[0].starts_with("35=3|34=3|45=2|"), "{did:?}");
    assert!(end.session.has_early());
}

#[test]
fn a_too_long_message_without_a_readable_number_ends_the_session_and_says_why() {
    let text = "message is longer than 4096 bytes";
    for fields in ["35=D|49=PEER|56=US|", "35=D|34=0|11=x|", "35=D|34=2|49=OTHER|"] {
        let mut end = End::logged_on();
        let did = too_long(&mut end, fields);
        assert_eq!(
            did,
            [format!("35=5|34=2|58={text}|"), format!("close: TooLong: {text}")],
            "{fields}"
        );
        assert_eq!(end.numbers().0, 2);
    }
    let mut end = End::logged_on();
    let did = too_long(&mut end, "35=D|34=1|11=x|");
    assert!(did[0].contains("MsgSeqNum too low"), "{did:?}");
}

#[test]
fn a_logon_that_is_too_long_is_refused_and_leaves_no_trace() {
    let mut end = End::new(Role::Acceptor, |_| ());
    end.connect();
    let did = too_long(&mut end, "35=A|34=1|98=0|108=30|");
    assert!(did[0].starts_with("35=5|34=1|58=message is longer"), "{did:?}");
    assert_eq!(end.numbers(), (1, 1));
}
