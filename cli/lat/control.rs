//! What the two ends tell each other beside the measured link: JSON, one value a line, over a TCP connection of its own.

use crate::Failure;
use crate::process::Interrupt;
use net::poller::{Interest, Poller};
use net::tcp::{Received, TcpStream};
use net::{StreamBuffer, TcpOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, PipeReader};
use std::net::SocketAddr;
use std::time::Instant;
use types::Duration;

/// The connection. An interrupt ends every wait.
#[derive(Debug)]
pub(super) struct Control {
    stream: TcpStream,
    poller: Poller,
    input: StreamBuffer,
    interrupt: Interrupt,
}

/// Tokens of the poller: the connection, and the end of what is watched beside it.
const OTHER_END: u64 = 0;
const ENDED: u64 = 1;

/// Longest line: a histogram is some tens of kilobytes.
const LINE_BYTES: usize = 1 << 20;

/// Longest reason why a line makes no sense: whoever connects may send anything.
const REASON_CHARS: usize = 200;

/// How long to wait for the other end to take the connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// A wait for input, before the next look. It sleeps in the kernel, so that it takes nothing from what is measured.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long the other end may take no bytes of ours.
const SEND_WITHIN: Duration = Duration::from_secs(10);

/// A wait for the kernel to take more.
const SEND_EVERY: std::time::Duration = std::time::Duration::from_millis(1);

impl Control {
    /// Connects to the listening end.
    pub(super) fn connect(peer: SocketAddr) -> Result<TcpStream, Failure> {
        let options = TcpOptions {
            no_delay: true,
            ..TcpOptions::default()
        };
        Ok(TcpStream::connect(peer, &options, CONNECT_WITHIN)?)
    }

    /// Over a connection.
    pub(super) fn new(stream: TcpStream, interrupt: Interrupt) -> Result<Self, Failure> {
        let poller = Poller::new(2)?;
        poller.add(&stream, OTHER_END, Interest::READ)?;
        Ok(Self {
            stream,
            poller,
            input: StreamBuffer::new(LINE_BYTES),
            interrupt,
        })
    }

    pub(super) fn local(&self) -> Result<SocketAddr, Failure> {
        Ok(self.stream.local_addr()?)
    }

    pub(super) fn peer(&self) -> Result<SocketAddr, Failure> {
        Ok(self.stream.peer_addr()?)
    }

    /// Sends one value.
    pub(super) fn send(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        let mut rest = &line[..];
        let began = Instant::now();
        while !rest.is_empty() {
            let taken = self.stream.send(rest).map_err(|error| went_away(&error))?;
            rest = &rest[taken..];
            if taken == 0 {
                self.go_on(began, SEND_WITHIN)?;
                std::thread::sleep(SEND_EVERY);
            }
        }
        Ok(())
    }

    /// Waits so long for the next value.
    pub(super) fn receive<T: DeserializeOwned>(&mut self, within: Duration) -> Result<T, Failure> {
        self.next(within)?.ok_or_else(hung_up)
    }

    /// The next value, waited for so long; `None` once the other end has hung up.
    pub(super) fn next<T: DeserializeOwned>(&mut self, within: Duration) -> Result<Option<T>, Failure> {
        let began = Instant::now();
        loop {
            if let Some(end) = self.input.bytes().iter().position(|&byte| byte == b'\n') {
                let value = serde_json::from_slice(&self.input.bytes()[..end]).map_err(|error| {
                    // It quotes what came, which may be long.
                    let error = error.to_string().chars().take(REASON_CHARS).collect::<String>();
                    Failure::new(format_args!(
                        "the other end is no `tickgate lat` of this version: {error}"
                    ))
                })?;
                self.input.consume(end + 1);
                return Ok(Some(value));
            }
            if self.input.bytes().len() >= LINE_BYTES {
                return Err(Failure::new(format_args!(
                    "the other end sent a line longer than {LINE_BYTES} bytes"
                )));
            }
            self.go_on(began, within)?;
            match self
                .input
                .receive(&mut self.stream)
                .map_err(|error| went_away(&error))?
            {
                Received::Bytes(_) => {}
                Received::Closed => return Ok(None),
                Received::Nothing => {
                    self.poller.poll(LOOK_EVERY)?;
                }
            }
        }
    }

    /// Sleeps until the other end of `ended` is gone: what this end does meanwhile is over. The other end has nothing to
    /// say before.
    ///
    /// # Errors
    /// It went away, or spoke.
    pub(super) fn watch(&mut self, ended: &PipeReader) -> Result<(), Failure> {
        self.poller.add(ended, ENDED, Interest::READ)?;
        let watched = self.watch_both();
        self.poller.remove(ended)?;
        watched
    }

    fn watch_both(&mut self) -> Result<(), Failure> {
        loop {
            let count = self.poller.poll(LOOK_EVERY)?;
            let tokens = (0..count).map(|index| self.poller.ready(index).token);
            // Where the measured link has ended because the other end did, that is the reason.
            match tokens.min() {
                None => {}
                Some(OTHER_END) => match self
                    .input
                    .receive(&mut self.stream)
                    .map_err(|error| went_away(&error))?
                {
                    Received::Nothing => {}
                    Received::Closed => return Err(hung_up()),
                    Received::Bytes(_) => return Err(Failure::new("the other end spoke out of turn")),
                },
                Some(_) => return Ok(()),
            }
        }
    }

    /// From now on waits end by their time alone: what is waited for was brought before the interrupt.
    pub(super) fn be_patient(&mut self) {
        self.interrupt = Interrupt::never();
    }

    /// Whether to wait on.
    fn go_on(&self, began: Instant, within: Duration) -> Result<(), Failure> {
        if self.interrupt.is_set() {
            return Err(Failure::new("interrupted"));
        }
        if began.elapsed().as_nanos() >= u128::from(within.0) {
            return Err(Failure::new(format_args!(
                "the other end went away: nothing from it for {within}"
            )));
        }
        Ok(())
    }
}

fn hung_up() -> Failure {
    Failure::new("the other end went away: it hung up; look at what it printed")
}

fn went_away(error: &io::Error) -> Failure {
    Failure::new(format_args!("the other end went away: {error}"))
}
