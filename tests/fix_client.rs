//! A FIX client made of a plain socket: it says what it is told to, and reads what comes, `|` behind each field.

use crate::market::PATIENCE;
use proto::fix;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime};
use types::Timestamp;

/// One FIX session, over as many connections as it takes.
pub(crate) struct FixClient {
    comp_id: &'static str,
    address: SocketAddr,
    stream: Option<TcpStream>,
    /// Received and not yet a whole message.
    bytes: Vec<u8>,
    /// MsgSeqNum (34) of its next message.
    pub(crate) next: u64,
}

impl FixClient {
    /// The client with this CompID, not connected.
    pub(crate) const fn new(comp_id: &'static str, address: SocketAddr) -> Self {
        Self {
            comp_id,
            address,
            stream: None,
            bytes: Vec::new(),
            next: 1,
        }
    }

    /// Connects and logs on with more fields; gives the answer. A session whose old connection is not gone yet is refused;
    /// then again.
    pub(crate) fn log_on(&mut self, fields: &str) -> String {
        let start = Instant::now();
        loop {
            let number = self.next;
            let stream = TcpStream::connect(self.address).expect("it listens");
            stream.set_nodelay(true).expect("a socket");
            let look = Some(Duration::from_millis(5));
            stream.set_read_timeout(look).expect("a socket");
            self.stream = Some(stream);
            self.bytes.clear();
            self.send("A", &format!("98=0|108=30|{fields}"));
            let answer = self.receive();
            if answer.contains("|35=A|") {
                return answer;
            }
            self.next = number;
            assert!(start.elapsed() < PATIENCE, "{} cannot log on: {answer}", self.comp_id);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a message of this type with these fields, `|` behind each.
    pub(crate) fn send(&mut self, msg_type: &str, fields: &str) {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("a clock");
        let mut digits = [0; fix::TIMESTAMP_LENGTH];
        let now = Timestamp(u64::try_from(now.as_nanos()).expect("before 2554"));
        let length = fix::write_timestamp(now, fix::TimePrecision::Milliseconds, &mut digits);
        let now = String::from_utf8_lossy(&digits[..length]);
        let (comp_id, next) = (self.comp_id, self.next);
        let body = format!("35={msg_type}|49={comp_id}|56=TICKGATE|34={next}|52={now}|{fields}").replace('|', "\u{1}");
        let head = format!("8=FIX.4.4\u{1}9={}\u{1}{body}", body.len());
        let sum = head.bytes().fold(0_u8, u8::wrapping_add);
        self.next += 1;
        let stream = self.stream.as_mut().expect("it is connected");
        stream
            .write_all(format!("{head}10={sum:03}\u{1}").as_bytes())
            .expect("the gateway reads");
    }

    /// The next message, which must come; empty when the gateway hung up.
    pub(crate) fn receive(&mut self) -> String {
        let start = Instant::now();
        loop {
            if let fix::Frame::Message(length) = fix::frame(&self.bytes) {
                let message = self.bytes.drain(..length).collect::<Vec<_>>();
                return String::from_utf8_lossy(&message).replace('\u{1}', "|");
            }
            assert!(start.elapsed() < PATIENCE, "{} hears nothing", self.comp_id);
            let mut buffer = [0; 65_536];
            match self.stream.as_mut().expect("it is connected").read(&mut buffer) {
                Ok(0) => return String::new(),
                Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return String::new(),
            }
        }
    }
}

/// The value of a field of a message with `|` behind each; empty when it is not there.
pub(crate) fn value(message: &str, tag: u32) -> &str {
    let start = format!("{tag}=");
    let mut fields = message.split('|');
    fields.find_map(|field| field.strip_prefix(&start)).unwrap_or_default()
}
